#include <cmath>

#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/pointwise.h"
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

// A second rank with the same samples, which move with this one's: sums over both are twice as large, and a loss's
// gradient is that of this rank's loss by all copies of an operand.
class Twin : public Collective {
 public:
  void allreduce_sum(std::span<double> values) override {
    for (double& v : values) v *= 2;
  }
};

// The statistics of all samples twice are those of the samples. gamma and beta are this rank's alone.
Row synchronised(std::string config, Shape x, Epilogue epilogue = {}) {
  const Shape channels{x[1]};
  std::vector<Operand> operands{{x, -1, 2}, {channels, 0.5, 1.5}, {channels}};
  if (epilogue.residual) operands.push_back({x});
  return {.op = "batch_norm2d_sync",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace =
              [=](auto v) {
                Value y = batch_norm2d_sync({v[0], v[1], v[2]}, 1e-5, std::make_shared<Twin>()).y;
                if (epilogue.residual) y = add(y, v[3]);
                return epilogue.relu ? relu(y) : y;
              },
          .reference =
              [=](auto in) {
                Array y = normalise_by_batch(in, 1e-5);
                for (std::size_t i = 0; i < y.values.size(); ++i) {
                  if (epilogue.residual) y.values[i] += in[3].values[i];
                  if (epilogue.relu) y.values[i] = std::max(y.values[i], 0.0);
                }
                return y;
              }};
}

Row summed(std::string config, Shape x) {
  return {.op = "all_reduce_sum",
          .config = std::move(config),
          .operands = {{std::move(x)}},
          .trace = [](auto v) { return all_reduce_sum(v[0], std::make_shared<Twin>()); },
          .reference =
              [](auto in) {
                Array y = in[0];
                for (double& v : y.values) v *= 2;
                return y;
              }};
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
      training("odd_shape", {3, 5, 3, 7}, 1e-5),
      training("one_channel", {4, 1, 2, 3}, 1e-5),
      training("one_pixel", {5, 3, 1, 1}, 1e-3),
      training("sixteen_channels", {2, 16, 3, 3}, 1e-5),
      inference("odd_shape", {2, 5, 3, 4}, 1e-5),
      inference("one_sample", {1, 3, 2, 2}, 1e-3),
      synchronised("odd_shape", {3, 5, 3, 7}),
      synchronised("one_pixel", {5, 3, 1, 1}),
      synchronised("sixteen_channels", {2, 16, 3, 3}),
      synchronised("relu", {3, 5, 3, 3}, {.relu = true}),
      synchronised("residual_relu", {2, 16, 3, 3}, {.residual = true, .relu = true}),
      summed("native", {7}),
      summed("images", {2, 3, 3, 2}),
  };
}

}  // namespace lockstep::optest
