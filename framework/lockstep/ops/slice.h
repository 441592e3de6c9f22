// Parts of a value along its axes, the reverse order of elements, and values placed in a larger one. All of these move
// elements of any type; each is the gradient of another one.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// The elements start, start + step, ... along an axis; `length` of them. A negative step walks backwards.
struct AxisRange {
  std::int64_t start = 0, length = 0, step = 1;
  bool operator==(const AxisRange&) const = default;
};

// y[i, j, ...] = x[ranges[0] at i, ranges[1] at j, ...], with a range per axis.
class SliceOp : public Op {
 public:
  explicit SliceOp(std::vector<AxisRange> ranges) : ranges_(std::move(ranges)) {}
  const std::vector<AxisRange>& ranges() const { return ranges_; }
  std::string_view name() const override { return "slice"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  std::vector<AxisRange> ranges_;
};

// y of `shape` is `value`, but y[ranges[0] at i, ranges[1] at j, ...] = x[i, j, ...]: the gradient of a slice, and
// padding with a constant.
class PlaceOp : public Op {
 public:
  PlaceOp(Shape shape, std::vector<AxisRange> ranges, double value = 0)
      : shape_(std::move(shape)), ranges_(std::move(ranges)), value_(value) {}
  const std::vector<AxisRange>& ranges() const { return ranges_; }
  double value() const { return value_; }
  std::string_view name() const override { return "place"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  Shape shape_;
  std::vector<AxisRange> ranges_;
  double value_;
};

// y[i] = x[(i - shift) modulo size], along each axis.
class RollOp : public Op {
 public:
  explicit RollOp(std::vector<std::int64_t> shifts) : shifts_(std::move(shifts)) {}
  const std::vector<std::int64_t>& shifts() const { return shifts_; }  // one per axis, of any sign
  std::string_view name() const override { return "roll"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  std::vector<std::int64_t> shifts_;
};

// All functions count axes as PyTorch does (-1 is the last one) and throw Error for an axis or an element that x does
// not have.

// Returns the part of x with a range for each of its first axes; the other axes are whole.
Value slice(Value x, std::vector<AxisRange> ranges);
// Returns `length` elements along one axis, from `start` on, each `step` behind the one before.
Value slice(Value x, int axis, std::int64_t start, std::int64_t length, std::int64_t step = 1);
// Returns the elements of one index along the axis, without this axis; -1 is the last index.
Value select(Value x, int axis, std::int64_t index);
// Returns a value of `shape` with x at `ranges`, one per axis, and `value` elsewhere.
Value place(Value x, Shape shape, std::vector<AxisRange> ranges, double value = 0);
// Reverses the order of the elements along these axes.
Value flip(Value x, const std::vector<int>& axes);
// Moves the elements along each axis by its shift; elements that leave at one end enter at the other.
Value roll(Value x, const std::vector<std::int64_t>& shifts, const std::vector<int>& axes);

}  // namespace lockstep
