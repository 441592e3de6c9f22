// Sum and mean over all elements, the fill and expansion that their gradients need, and sums over all but the channels.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// y = factor * sum of all elements of x, a scalar; factor is 1 (sum) or 1/elements (mean; 0 for no elements).
class SumOp : public Op {
 public:
  explicit SumOp(bool mean) : mean_(mean) {}
  bool mean() const { return mean_; }
  std::string_view name() const override { return "sum"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override { return mean_ ? "mean" : "sum"; }

 private:
  bool mean_;
};

// A value of the given shape filled with factor * x, x a scalar.
class ExpandOp : public Op {
 public:
  ExpandOp(Shape shape, double factor) : shape_(std::move(shape)), factor_(factor) {}
  double factor() const { return factor_; }
  std::string_view name() const override { return "expand"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  Shape shape_;
  double factor_;
};

// A constant, known when tracing.
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
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
};

Value sum(Value x);
Value mean(Value x);
Value mean_squared_error(Value prediction, Value target);  // mean over all elements
Value fill(Graph& graph, Type type, double value);
Value channel_sum(Value x);
Value over_channels(Value x, const Type& type);  // (C), repeated over (N, C, ...): the gradient of channel_sum

}  // namespace lockstep
