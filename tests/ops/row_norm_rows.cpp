// Layer, RMS, group and instance norm, and batch norm of values that are no images.
#include <cmath>

#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/row_norm.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

// Normalises each run of `size` elements.
Array normalised_rows(const Array& x, std::int64_t size, bool centred, double epsilon) {
  Array y(x.shape);
  for (std::int64_t first = 0; first < x.shape.elements(); first += size) {
    double mean = 0, variance = 0;
    for (std::int64_t i = first; centred && i < first + size; ++i) mean += x[i] / static_cast<double>(size);
    for (std::int64_t i = first; i < first + size; ++i)
      variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    for (std::int64_t i = first; i < first + size; ++i) y[i] = (x[i] - mean) / std::sqrt(variance + epsilon);
  }
  return y;
}

enum class Affine : std::uint8_t { None, Weight, Both };

Row rows_of(std::string config, Shape x, int dims, bool centred, Affine affine, double epsilon = 1e-5) {
  const Shape row(std::vector<std::int64_t>(x.dims().end() - dims, x.dims().end()));
  const std::int64_t size = row.elements();
  std::vector<Operand> operands{{x, -1, 2}};
  if (affine != Affine::None) operands.push_back({row, 0.5, 1.5});
  if (affine == Affine::Both) operands.push_back({row});
  return {.op = centred ? "layer_norm" : "rms_norm",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace =
              [=](auto v) {
                const Value weight = affine == Affine::None ? Value() : v[1];
                if (!centred) return rms_norm(v[0], dims, weight, epsilon);
                return layer_norm(v[0], dims, weight, affine == Affine::Both ? v[2] : Value(), epsilon);
              },
          .reference =
              [=](auto in) {
                Array y = normalised_rows(in[0], size, centred, epsilon);
                for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
                  if (affine != Affine::None) y[i] *= in[1][i % size];
                  if (affine == Affine::Both) y[i] += in[2][i % size];
                }
                return y;
              }};
}

// groups 0: instance norm.
Row groups_of(std::string config, Shape x, std::int64_t groups, bool affine) {
  const std::int64_t channels = x[1], spatial = x.tail().tail().elements();
  std::vector<Operand> operands{{x, -1, 2}};
  if (affine) {
    operands.push_back({Shape{channels}, 0.5, 1.5});
    operands.push_back({Shape{channels}});
  }
  return {.op = "group_norm",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace =
              [=](auto v) {
                const Value weight = affine ? v[1] : Value(), bias = affine ? v[2] : Value();
                return groups > 0 ? group_norm(v[0], groups, weight, bias) : instance_norm(v[0], weight, bias);
              },
          .reference =
              [=](auto in) {
                const std::int64_t size = channels / (groups > 0 ? groups : channels) * spatial;
                Array y = normalised_rows(in[0], size, true, 1e-5);
                for (std::int64_t i = 0; affine && i < y.shape.elements(); ++i)
                  y[i] = y[i] * in[1][i / spatial % channels] + in[2][i / spatial % channels];
                return y;
              }};
}

Array normalised_channels(std::span<const Array> in) {
  const Shape& shape = in[0].shape;
  const std::int64_t spatial = shape.tail().tail().elements(), n = shape[0] * spatial;
  Array y(shape);
  for (std::int64_t c = 0; c < shape[1]; ++c) {
    const auto at = [&](std::int64_t k) { return (k / spatial * shape[1] + c) * spatial + k % spatial; };
    double mean = 0, variance = 0;
    for (std::int64_t k = 0; k < n; ++k) mean += in[0][at(k)] / static_cast<double>(n);
    for (std::int64_t k = 0; k < n; ++k) variance += std::pow(in[0][at(k)] - mean, 2) / static_cast<double>(n);
    for (std::int64_t k = 0; k < n; ++k)
      y[at(k)] = in[1][c] * (in[0][at(k)] - mean) / std::sqrt(variance + 1e-5) + in[2][c];
  }
  return y;
}

Row batch(std::string config, Shape x) {
  const Shape channels{x[1]};
  return {.op = "batch_norm2d",
          .config = std::move(config),
          .operands = {{std::move(x), -1, 2}, {channels, 0.5, 1.5}, {channels}},
          .trace = [](auto v) { return batch_norm2d(v[0], v[1], v[2], 1e-5).y; },
          .reference = normalised_channels};
}

// A second rank with the same samples.
class Double : public Collective {
 public:
  void allreduce_sum(std::span<double> values) override {
    for (double& v : values) v *= 2;
  }
};

Row synchronised_batch(std::string config, Shape x) {
  Row row = batch(std::move(config), std::move(x));
  row.op = "batch_norm2d_sync";
  row.trace = [](auto v) { return batch_norm2d_sync({v[0], v[1], v[2]}, 1e-5, std::make_shared<Double>()).y; };
  return row;
}

Row inference_batch(std::string config, Shape x) {
  const Shape channels{x[1]};
  return {.op = "batch_norm2d_inference",
          .config = std::move(config),
          .operands = {{x, -1, 2}, {channels, 0.5, 1.5}, {channels}, {channels}, {channels, 0.5, 2}},
          .trace = [](auto v) { return batch_norm2d_inference(v[0], v[1], v[2], v[3], v[4], 1e-5); },
          .reference =
              [spatial = x.tail().tail().elements(), n = x[1]](auto in) {
                Array y(in[0].shape);
                for (std::int64_t i = 0; i < y.shape.elements(); ++i) {
                  const std::int64_t c = i / spatial % n;
                  y[i] = in[1][c] * (in[0][i] - in[3][c]) / std::sqrt(in[4][c] + 1e-5) + in[2][c];
                }
                return y;
              },
          .constant = {false, false, false, true, true}};
}

}  // namespace

std::vector<Row> row_norm_rows() {
  std::vector<Row> rows{
      rows_of("weight_and_bias", {4, 7}, 1, true, Affine::Both),
      rows_of("weight_alone", {3, 2, 5}, 1, true, Affine::Weight),
      rows_of("no_parameters", {5, 6}, 1, true, Affine::None),
      rows_of("two_dimensions", {3, 2, 4}, 2, true, Affine::Both),
      rows_of("whole_value", {6}, 1, true, Affine::Both),
      rows_of("many_rows", {41, 3}, 1, true, Affine::Both, 0.1),
      rows_of("weight", {4, 7}, 1, false, Affine::Weight),
      rows_of("no_weight", {2, 3, 5}, 1, false, Affine::None),
      rows_of("two_dimensions", {3, 2, 4}, 2, false, Affine::Weight, 1e-3),
      groups_of("two_groups", {3, 4, 2, 3}, 2, true),
      groups_of("one_group_of_vectors", {3, 6}, 1, true),
      groups_of("groups_without_parameters", {2, 6, 5}, 3, false),
      groups_of("many_samples", {9, 4, 5}, 2, true),
      groups_of("instances", {2, 3, 5}, 0, true),
      groups_of("instances_of_images", {2, 3, 2, 4}, 0, false),
  };
  for (const Shape& shape : {Shape{9, 5}, Shape{4, 16}, Shape{3, 8}, Shape{3, 5, 7}, Shape{2, 3, 2, 3, 2}}) {
    std::string name = "of";
    for (const std::int64_t size : shape.dims()) name += "_" + std::to_string(size);
    rows.push_back(batch(name, shape));
    rows.push_back(synchronised_batch(name, shape));
    rows.push_back(inference_batch(name, shape));
  }
  return rows;
}

}  // namespace lockstep::optest
