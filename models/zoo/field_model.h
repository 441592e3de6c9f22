// Models that map one array to another: fields to fields (a solver's state to its next one), fields to numbers, rows of
// a table to rows. And the table of them by name, for programs and tools; a new model needs its files and a line in
// field_model.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/nn/module.h"

namespace lockstep::models {

// A call turns inputs (samples, FieldModelConfig::input) into predictions (samples, FieldModelConfig::output).
class FieldModel : public nn::Module {
 public:
  virtual Value operator()(Value input) const = 0;
};

struct FieldModelConfig {
  Shape input{}, output{};  // of one sample: (channels, 1 to 3 spatial sizes), or (features)
  // 0: the model's default.
  std::int64_t width = 0;  // channels, or features, of the first layer inside
  std::int64_t depth = 0;  // layers, or levels of resolution
  std::int64_t modes = 0;  // frequencies per axis that a Fourier layer keeps
};

struct FieldModelEntry {
  std::string name;
  std::string description;  // with the defaults of width, depth and modes
  std::function<std::unique_ptr<FieldModel>(const FieldModelConfig&)> build;
};

std::span<const FieldModelEntry> field_models();

// Makes the model of this name. Throws Error for an unknown name, and for shapes that the model cannot take.
std::unique_ptr<FieldModel> build_field_model(std::string_view name, const FieldModelConfig& config);

// Returns the number of spatial axes, 1 to 3, of a model whose input and output are fields of the same sizes. Throws
// Error at `site` for other shapes.
int spatial_axes(std::string_view site, const FieldModelConfig& config);

// Calls f with std::integral_constant<int, axes>, axes in 1 to 3.
template <class F>
auto with_axes(int axes, F f) {
  if (axes == 1) return f(std::integral_constant<int, 1>());
  if (axes == 2) return f(std::integral_constant<int, 2>());
  return f(std::integral_constant<int, 3>());
}

}  // namespace lockstep::models
