// Models that map one array to another: fields to fields (a solver's state to its next one), fields to numbers, rows of
// a table to rows, series to their next values. And the table of them by name, for programs and tools; a new model
// needs its files and a line in field_model.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/nn/module.h"

namespace lockstep::models {

// A call turns inputs (samples, FieldModelConfig::input) into predictions (samples, FieldModelConfig::output).
class FieldModel : public nn::Module {
 public:
  virtual Value operator()(Value input) const = 0;

  struct Result {
    Value prediction;
    Value penalty = {};  // scalar, a mean over the samples, for the program to add to its loss; empty: none
  };
  // As a call, with what the model adds to the error of its prediction: the KL divergence of a VAE.
  virtual Result with_penalty(Value input) const { return {(*this)(input)}; }
};

struct FieldModelConfig {
  Shape input{}, output{};  // of one sample: (channels, 1 to 3 spatial sizes), (features), or (time, features)
  // 0: the model's default.
  std::int64_t width = 0;   // channels, or features, of the first layer inside
  std::int64_t depth = 0;   // layers, or levels of resolution
  std::int64_t modes = 0;   // frequencies per axis that a Fourier layer keeps
  std::int64_t latent = 0;  // numbers in the middle of a variational autoencoder
  double dropout = 0;       // in [0, 1), of models that have it
  double kl_weight = 1;     // of a variational autoencoder's divergence, at least 0
  bool series = false;      // inputs are series, (time) or (time, features): for the messages of errors
};

struct FieldModelEntry {
  std::string name;
  std::string description;  // with what it takes, and the defaults of width, depth, modes and latent
  std::function<std::unique_ptr<FieldModel>(const FieldModelConfig&)> build;
  bool needs_series = false;              // inputs are series
  std::vector<std::string_view> reads{};  // options of train_fields, beside --width and --depth
};

std::span<const FieldModelEntry> field_models();

// Makes the model of this name. Throws Error for an unknown name, and for shapes that the model cannot take.
std::unique_ptr<FieldModel> build_field_model(std::string_view name, const FieldModelConfig& config);

// Returns the number of spatial axes, 1 to 3, of a model whose input and output are fields of the same sizes. Throws
// Error at `site` for other shapes.
int spatial_axes(std::string_view site, const FieldModelConfig& config);
// The same for a model that makes anything of a field: the output may have any shape.
int spatial_axes_of_input(std::string_view site, const FieldModelConfig& config);

// Calls f with std::integral_constant<int, axes>, axes in 1 to 3.
template <class F>
auto with_axes(int axes, F f) {
  if (axes == 1) return f(std::integral_constant<int, 1>());
  if (axes == 2) return f(std::integral_constant<int, 2>());
  return f(std::integral_constant<int, 3>());
}

}  // namespace lockstep::models
