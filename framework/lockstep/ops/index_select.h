// Elements of a value chosen by indices that are known when the plan runs: whole slices along an axis, or one element
// per index. Indices are i32 from 0 to the size of the axis - 1; another one throws SampleError, which names row,
// position and value, when the plan runs.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (x, indices of any shape K) -> x with the dimension `axis` replaced by K.
class IndexSelectOp : public Op {
 public:
  explicit IndexSelectOp(int axis) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "index_select"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return "axis " + std::to_string(axis_); }

 private:
  int axis_;
};

// (dy, indices) -> dx with `size` elements along the axis: for each index the sum of dy over its uses, in their order,
// in f64; 0 for an index without a use.
class IndexAddOp : public Op {
 public:
  IndexAddOp(int axis, std::int64_t size) : axis_(axis), size_(size) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "index_add"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return "axis " + std::to_string(axis_); }

 private:
  int axis_;
  std::int64_t size_;
};

// (x, indices) -> y of the shape of the indices, as torch.gather: y[i, j, k] = x[i, indices[i, j, k], k] for axis 1.
// x has as many axes as the indices, and no fewer elements along the other axes.
class GatherOp : public Op {
 public:
  explicit GatherOp(int axis) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "gather"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return "axis " + std::to_string(axis_); }

 private:
  int axis_;
};

// (dy, indices) -> dx of `shape`: for each element the sum of dy over its uses, in their order, in f64.
class ScatterAddOp : public Op {
 public:
  ScatterAddOp(int axis, Shape shape) : axis_(axis), shape_(std::move(shape)) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "scatter_add"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return "axis " + std::to_string(axis_); }

 private:
  int axis_;
  Shape shape_;
};

// Throws Error where indices are not i32. For ops that read indices.
void require_indices(std::string_view op, std::string_view path, const Type& indices);

// The functions count axes as PyTorch does (-1 is the last one) and throw Error where shapes or types do not fit. The
// gradient flows to x, any number of times.
Value index_select(Value x, int axis, Value indices);
Value gather(Value x, int axis, Value indices);

}  // namespace lockstep
