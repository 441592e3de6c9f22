// The data of a run: the sets that it trains and evaluates on, and the transforms between a set and the inputs of the
// model. A session takes it from an entry of a catalogue (data/catalogue.h) or from its caller.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/batch.h"
#include "lockstep/data/image_data.h"
#include "lockstep/data/sample_order.h"
#include "lockstep/data/stream_source.h"
#include "lockstep/data/transforms.h"
#include "lockstep/data/unreadable.h"

namespace lockstep::data {

class BatchMix;
class SampleSupply;

// The use that a run makes of its data. A run that only evaluates or predicts takes the numbers by which data is
// normalised from the checkpoint of its weights.
enum class Purpose : std::uint8_t { Train, Evaluate, Predict };

// The samples of a training epoch, and their way into batches.
struct EpochSamples {
  std::shared_ptr<const SampleOrder> order{};  // null: each sample once
  SampleSupply* supply = nullptr;              // brings samples of the training set to this rank; null: none is needed
  std::shared_ptr<const BatchMix> mix{};       // mixes the samples of a batch; null: none
};

// The classes of samples, where their targets are classes.
struct ClassLabels {
  std::string field = "label";         // of the training set's samples: an integer, if RunData::classes() is not 0
  std::vector<std::string> names{};    // by class; empty: they are not known
  std::vector<std::int64_t> counts{};  // by class: how often it is there in training samples; empty: not counted
};

// Facts of images; data of other kinds have the defaults.
struct ImageFacts {
  PixelStatistics pixels{};  // one value per channel
  bool cropped = false;      // images were cropped to the model's size when they were decoded
};

// Facts for a run that evaluates or predicts with the trained model.
struct PredictionFacts {
  // The text of a JSON object with facts of the training data, which checkpoints contain; empty: none.
  std::string record{};
  // Fields of the model that the sets do not have, such as targets: a prediction does not read them. The number of
  // classes, if the sets cannot tell it; 0: they can.
  std::vector<Field> absent{};
  std::int64_t classes = 0;
  // Turns predictions of a batch (samples, ...) into the arrays that a file of predictions has, in the units of the
  // user's files, each (samples, ...). Empty: predictions are written as they are or, of classes, by
  // class_predictions() (data/class_predictions.h).
  std::function<std::vector<NamedTensor>(Tensor predictions)> decode{};
  std::vector<std::string> decoded{};  // the names of these arrays, where they are known before the first prediction
  // Completes each batch of an evaluation or a prediction in the training thread, where what it does depends on the
  // training so far, as the rows of a vocabulary do; empty: batches are complete.
  std::function<void(Batch&)> finish{};
};

struct RunData {
  std::unique_ptr<Dataset> train{}, eval{};                     // null eval: the run has no evaluation
  std::optional<StreamSource> stream{};                         // the training samples, in place of `train`
  std::map<std::string, std::unique_ptr<Dataset>> more_eval{};  // further evaluation sets, by name
  Transforms train_transforms{}, eval_transforms{};             // all evaluation sets take eval_transforms
  EpochSamples epoch{};                                         // data/wrap_sets.h sets order and supply
  ClassLabels labels{};
  ImageFacts images{};
  PredictionFacts prediction{};
  // The sets that replace unreadable samples (data/wrap_sets.h).
  std::vector<std::shared_ptr<const ReplaceUnreadable>> replacing{};
  std::string notes{};  // a line for the log about changes of the samples; empty: none

  std::int64_t classes() const;
  std::int64_t replaced() const;  // reads, on this rank, of unreadable samples that gave other samples
  // Returns the number of samples of a training epoch; not of a stream.
  std::int64_t epoch_samples() const { return epoch.order ? epoch.order->length() : train->size(); }
  // Returns the samples that a run predicts: those for evaluation, if there are any.
  const Dataset& predicted() const { return eval ? *eval : *train; }
  // Returns the fields of a training sample before all transforms.
  const std::vector<Field>& source_fields() const { return stream ? stream->fields : train->fields(); }
  // Returns the fields of a sample after eval_transforms, then absent ones: the model's inputs, without the dimension
  // of samples.
  std::vector<Field> fields() const;
  // Returns the shape of one of these fields; throws Error, with the known names, if there is none.
  Shape shape_of(std::string_view field) const;
  Shape image_shape() const { return shape_of("image"); }  // (channels, height, width)

  // Throws Error unless there is a training set or a stream, and all sets give the same fields for training and
  // evaluation.
  void check() const;
};

// Appends to both lists of transforms a conversion of floating-point fields to `floats`, F32 or F64, where a field has
// another type. Throws Error where transforms do not accept the fields before them.
void convert_floats(RunData& data, DType floats);

}  // namespace lockstep::data
