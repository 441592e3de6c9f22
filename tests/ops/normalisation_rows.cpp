#include <cmath>

#include "lockstep/ops/batch_norm2d.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// y = gamma (x - mean) / sqrt(variance + epsilon) + beta, per channel of in[0].
Array normalise(std::span<const Array> in, const Array& mean, const Array& variance, double epsilon) {
  const Array& x = in[0];
  Array y(x.shape);
  const std::int64_t spatial = x.shape[2] * x.shape[3];
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const std::int64_t c = static_cast<std::int64_t>(i) / spatial % x.shape[1];
    y.values[i] = in[1][c] * (x.values[i] - mean[c]) / std::sqrt(variance[c] + epsilon) + in[2][c];
  }
  return y;
}

Array normalise_by_batch(std::span<const Array> in, double epsilon) {
  const Array& x = in[0];
  const std::int64_t spatial = x.shape[2] * x.shape[3];
  Array mean(Shape{x.shape[1]}), variance(Shape{x.shape[1]});
  const double n = static_cast<double>(x.shape[0] * spatial);
  const auto channel = [&](std::size_t i) { return static_cast<std::int64_t>(i) / spatial % x.shape[1]; };
  for (std::size_t i = 0; i < x.values.size(); ++i) mean[channel(i)] += x.values[i] / n;
  for (std::size_t i = 0; i < x.values.size(); ++i)
    variance[channel(i)] += std::pow(x.values[i] - mean[channel(i)], 2) / n;
  return normalise(in, mean, variance, epsilon);
}

Row training(std::string config, Shape x, double epsilon) {
  const Shape channels{x[1]};
  return {.op = "batch_norm2d",
          .config = std::move(config),
          .operands = {{std::move(x), -1, 2}, {channels, 0.5, 1.5}, {channels}},
          .trace = [=](auto v) { return batch_norm2d(v[0], v[1], v[2], epsilon).y; },
          .reference = [=](auto in) { return normalise_by_batch(in, epsilon); }};
}

Row inference(std::string config, Shape x, double epsilon) {
  const Shape channels{x[1]};
  return {.op = "batch_norm2d_inference",
          .config = std::move(config),
          .operands = {{std::move(x), -1, 2}, {channels, 0.5, 1.5}, {channels}, {channels}, {channels, 0.5, 2}},
          .trace = [=](auto v) { return batch_norm2d_inference(v[0], v[1], v[2], v[3], v[4], epsilon); },
          .reference = [=](auto in) { return normalise(in, in[3], in[4], epsilon); },
          .constant = {false, false, false, true, true}};
}

}  // namespace

std::vector<Row> normalisation_rows() {
  return {
      training("odd_shape", {3, 5, 3, 7}, 1e-5),  training("one_channel", {4, 1, 2, 3}, 1e-5),
      training("one_pixel", {5, 3, 1, 1}, 1e-3),  training("sixteen_channels", {2, 16, 3, 3}, 1e-5),
      inference("odd_shape", {2, 5, 3, 4}, 1e-5), inference("one_sample", {1, 3, 2, 2}, 1e-3),
  };
}

}  // namespace lockstep::optest
