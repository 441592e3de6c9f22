// The tasks of train_fields, by the name of a loss: the kind of the targets, the shape of the model's output, and loss,
// metrics and prediction of a batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/metrics/units.h"
#include "lockstep/plan/trace.h"

namespace lockstep::models {

// Auto: Mse, or CrossEntropy for the classes of a table.
enum class FieldLoss : std::uint8_t { Auto, Mse, L1, Huber, RelativeL2, GaussianNll, CrossEntropy, Dice, Bce, Focal };

data::TargetKind target_kind(FieldLoss loss);

struct FieldLossOptions {
  FieldLoss loss = FieldLoss::Mse;      // not Auto
  std::vector<double> class_weights{};  // of classes, or of positive flags per channel; empty: ones
  std::int32_t ignore_index = -100;
  double label_smoothing = 0;  // of CrossEntropy
  double focal_gamma = 2;
  std::vector<std::string> class_names{};
  // How targets that are numbers were normalised, for errors in their units; empty: no such errors. `channel_axis`
  // counts the channels of the target.
  std::vector<metrics::TargetUnits> units{};
  int channel_axis = 1;
};

// Class weights from the text of an option: numbers with commas between them, or "balanced": (positions) / (classes x
// positions of the class), as scikit-learn has it, or 0 for a class without any. Empty for an empty text. Throws Error
// at site "options" for another text or number of weights, and where the loss takes none.
std::vector<double> class_weights(const std::string& text, FieldLoss loss, const data::RunData& data);

// Returns the shape of one sample of the model's output: that of the target, with twice the channels for the mean and
// variance of GaussianNll, or with the classes in front.
Shape output_shape(FieldLoss loss, const data::RunData& data);

// Returns loss, metrics and prediction, which is that of the target: the mean of GaussianNll, the logits of
// classes, the probabilities of flags.
plan::Traced field_task(const FieldLossOptions& options, Value output, Value target);

}  // namespace lockstep::models
