// Normalisation of each row of x by its own statistics: a row has the elements of the last dimensions. Layer norm (Ba,
// Kiros and Hinton, "Layer normalization", 2016) takes off the mean and divides by the deviation; RMS norm (Zhang and
// Sennrich, "Root mean square layer normalization", 2019) divides by the root of the mean square. Group norm (Wu and
// He, 2018) and instance norm (Ulyanov et al., 2016) take a sample's channels in groups, or one by one, as rows. All
// can be differentiated any number of times. Statistics of bf16 values are f32.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

struct RowNormOptions {
  bool centred = true;  // without: RMS norm, which knows no mean
  int dims = 1;         // of a row: the last dimensions of x
  // Above 0: group norm, of x (N, C, ...). A row is C / groups channels of a sample, and weight and bias have one value
  // per channel.
  std::int64_t groups = 0;
  double epsilon = 1e-5;
};

// (x, [weight, [bias]]) -> (y, inverse, [mean]): y = (x - mean) inverse weight + bias, where weight and bias have the
// shape of a row, and inverse = 1 / sqrt(variance + epsilon) and mean have one value per row. Without `centred` there
// is no mean, and the variance is the mean of x^2.
class RowNormOp : public Op {
 public:
  explicit RowNormOp(RowNormOptions options) : options_(options) {}
  const RowNormOptions& options() const { return options_; }
  std::string_view name() const override;  // layer_norm, rms_norm or group_norm
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  RowNormOptions options_;
};

// (x, dy, inverse, [mean], [weight]) -> (dx, [dweight, [dbias]]): with a weight, and with a bias if `bias`.
class RowNormGradientOp : public Op {
 public:
  RowNormGradientOp(RowNormOptions options, bool bias) : options_(options), bias_(bias) {}
  const RowNormOptions& options() const { return options_; }
  // The number of the weight among the inputs, if there are so many.
  std::size_t weight_input() const { return options_.centred ? 4 : 3; }
  std::string_view name() const override;
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  RowNormOptions options_;
  bool bias_;
};

// The rows of a shape. In group norm, row r has the channels from (r % groups) * row_channels on.
struct RowView {
  RowView() = default;
  RowView(const Shape& shape, const RowNormOptions& options);
  std::int64_t rows = 1, size = 1;
  std::int64_t groups = 0, row_channels = 1, spatial = 1;  // spatial: elements of a channel of a sample
};

// Normalises x over its last `dims` dimensions. weight and bias have their shape; both, or the bias, may be empty.
// Throw Error where shapes or types do not fit.
Value layer_norm(Value x, int dims, Value weight = {}, Value bias = {}, double epsilon = 1e-5);
Value rms_norm(Value x, int dims, Value weight = {}, double epsilon = 1e-5);
// Normalises x (N, C, ...) over each group of C / groups channels of a sample. weight and bias (C) may be empty. Throws
// Error where groups do not divide C, and in training for groups of one value.
Value group_norm(Value x, std::int64_t groups, Value weight = {}, Value bias = {}, double epsilon = 1e-5);
// Normalises x (N, C, ...) over each channel of a sample.
Value instance_norm(Value x, Value weight = {}, Value bias = {}, double epsilon = 1e-5);

}  // namespace lockstep
