// Values joined along an axis, and a value cut into parts: each is the gradient of the other. They move elements of any
// type.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// One or more values that differ in their sizes along `axis` alone -> one value.
class ConcatOp : public Op {
 public:
  explicit ConcatOp(int axis) : axis_(axis) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "concat"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return "axis " + std::to_string(axis_); }

 private:
  int axis_;
};

// x -> parts of these sizes along `axis`, in order; the sizes add up to that of x.
class SplitOp : public Op {
 public:
  SplitOp(int axis, std::vector<std::int64_t> sizes) : axis_(axis), sizes_(std::move(sizes)) {}
  int axis() const { return axis_; }
  std::string_view name() const override { return "split"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  int axis_;
  std::vector<std::int64_t> sizes_;
};

// All functions count axes as PyTorch does (-1 is the last one). Throw Error where shapes, types or sizes do not fit.

// Joins values along an axis that they have.
Value concat(const std::vector<Value>& values, int axis);
// Joins values of one shape along a new axis.
Value stack(const std::vector<Value>& values, int axis = 0);
// Cuts x into parts of these sizes.
std::vector<Value> split(Value x, const std::vector<std::int64_t>& sizes, int axis = 0);
// Cuts x into parts of `size` elements along the axis; the last part is smaller where they do not divide evenly.
std::vector<Value> split(Value x, std::int64_t size, int axis = 0);
// Cuts x into at most `parts` parts, as torch.chunk: all of ceil(size / parts) elements but the last one.
std::vector<Value> chunk(Value x, std::int64_t parts, int axis = 0);

}  // namespace lockstep
