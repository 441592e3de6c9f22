// Sums, means and extremes of a value over some of its axes, sums over all dimensions but the channels, and the ops of
// their gradients. The order of a sum follows from the shape alone. Sums and means of bf16 are f32; without elements a
// sum and a mean are 0, a maximum is -infinity, a minimum infinity.
#pragma once

#include "lockstep/graph/graph.h"
#include "lockstep/ops/reduced_axes.h"

namespace lockstep {

// Reduces x over `axes`, which ascend. With `keep`, the reduced axes stay as dimensions of 1. LogSumExp is the
// logarithm of the sum of exp(x), computed with x less its largest value. A NaN makes the result NaN.
class ReduceOp : public Op {
 public:
  enum class Kind : std::uint8_t { Sum, Mean, Max, Min, LogSumExp };
  ReduceOp(Kind kind, std::vector<int> axes, bool keep) : kind_(kind), keep_(keep), axes_(std::move(axes)) {}
  Kind kind() const { return kind_; }
  const std::vector<int>& axes() const { return axes_; }
  std::string_view name() const override;  // a sum and a mean are both "sum"
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  Kind kind_;
  bool keep_;
  std::vector<int> axes_;
};

// Fills a value of the given shape with factor * x for a scalar x.
class ExpandOp : public Op {
 public:
  ExpandOp(Shape shape, double factor) : shape_(std::move(shape)), factor_(factor) {}
  double factor() const { return factor_; }
  std::string_view name() const override { return "expand"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  Shape shape_;
  double factor_;
};

// A value of which every element is one constant of the trace.
class FillOp : public Op {
 public:
  FillOp(Type type, double value) : type_(std::move(type)), value_(value) {}
  double value() const { return value_; }
  std::string_view name() const override { return "fill"; }
  std::vector<Type> infer(std::string_view, std::span<const Type>) const override { return {type_}; }

 private:
  Type type_;
  double value_;
};

// (N, C, ...) -> (C): the gradient of a bias per channel.
class ChannelSumOp : public Op {
 public:
  std::string_view name() const override { return "channel_sum"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
};

// Return the sum and the mean of x over `axes`, or over all elements; with `keep`, the axes stay as dimensions of 1.
// Throw Error for an axis that x does not have.
Value sum(Value x, const Axes& axes = {}, bool keep = false);
Value mean(Value x, const Axes& axes = {}, bool keep = false);
// Return the largest and the smallest element. Where several elements are equal to it, each gets an equal part of the
// gradient.
Value amax(Value x, const Axes& axes = {}, bool keep = false);
Value amin(Value x, const Axes& axes = {}, bool keep = false);
// Returns the sum of (x - mean)^2 over `axes`, divided by the number of elements less `correction`: 1 for an estimate
// from samples, 0 for the mean. Not a number where nothing is left to divide by.
Value variance(Value x, const Axes& axes = {}, double correction = 1, bool keep = false);
// Returns the logarithm of the sum of exp(x).
Value logsumexp(Value x, const Axes& axes = {}, bool keep = false);
// Returns a value of this type filled with `value`.
Value fill(Graph& graph, Type type, double value);
// Returns the sum per channel: (N, C, ...) -> (C). Throws Error for fewer than two dimensions.
Value channel_sum(Value x);
// Repeats x (C) over the shape (N, C, ...) of `type`: the gradient of channel_sum.
Value over_channels(Value x, const Type& type);

}  // namespace lockstep
