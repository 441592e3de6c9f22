// Sums and means over all elements, sums over all dimensions but the channels, and the ops of their gradients.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// y = factor * sum of all elements of x, a scalar; factor is 1 (sum) or 1/elements (mean; 0 for no elements).
class SumOp : public Op {
 public:
  explicit SumOp(bool mean) : mean_(mean) {}
  bool mean() const { return mean_; }
  std::string_view name() const override { return "sum"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return mean_ ? "mean" : "sum"; }

 private:
  bool mean_;
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

// Returns the sum of all elements, a scalar.
Value sum(Value x);
// Returns the mean of all elements, a scalar; 0 for no elements.
Value mean(Value x);
// Returns a value of this type filled with `value`.
Value fill(Graph& graph, Type type, double value);
// Returns the sum per channel: (N, C, ...) -> (C). Throws Error for fewer than two dimensions.
Value channel_sum(Value x);
// Repeats x (C) over the shape (N, C, ...) of `type`: the gradient of channel_sum.
Value over_channels(Value x, const Type& type);

}  // namespace lockstep
