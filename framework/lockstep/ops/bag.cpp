#include "lockstep/ops/bag.h"

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

constexpr std::string_view name_of(BagMode mode) {
  return mode == BagMode::Sum ? "sum" : mode == BagMode::Mean ? "mean" : "max";
}

std::string describe(BagMode mode, std::optional<std::int64_t> padding) {
  return padding ? formatted("{}, without {}", name_of(mode), *padding) : formatted("{} of counts", name_of(mode));
}

void check_bags(std::string_view op, std::string_view path, const Type& x, const Type& use, bool ids) {
  check(x.shape.rank() == 3 && is_floating(x.dtype), op, "{}: input is {}, expected a floating type (N, K, E)", path,
        x.str());
  const Shape expected = ids ? Shape{x.shape[0], x.shape[1]} : Shape{x.shape[0]};
  check(use.shape == expected && (use.dtype == DType::I32 || use.dtype == DType::I64), op,
        "{}: {} are {}, expected i32 or i64 {}", path, ids ? "ids" : "counts", use.str(), expected.str());
}

}  // namespace

std::vector<Type> BagOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check_bags(name(), path, inputs[0], inputs[1], padding_.has_value());
  return {{Shape{inputs[0].shape[0], inputs[0].shape[2]}, inputs[0].dtype}};
}

std::vector<Value> BagOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<BagGradientOp>(mode_, padding_), {r.gradients[0], r.inputs[0], r.inputs[1]}), {}};
}

std::string BagOp::attributes() const { return describe(mode_, padding_); }

std::vector<Type> BagGradientOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check_bags(name(), path, inputs[1], inputs[2], padding_.has_value());
  return {inputs[1]};
}

// The sum and the mean are linear, so the gradient by dy is the bag itself. That of the maximum picks elements of x.
std::vector<Value> BagGradientOp::gradient(const Request& r) const {
  if (mode_ == BagMode::Max) return Op::gradient(r);  // throws Error
  return {apply_op(std::make_shared<BagOp>(mode_, padding_), {r.gradients[0], r.inputs[2]}), {}, {}};
}

std::string BagGradientOp::attributes() const { return describe(mode_, padding_); }

Value bag_of_ids(Value x, Value ids, std::int64_t padding, BagMode mode) {
  return apply_op(std::make_shared<BagOp>(mode, padding), {x, ids});
}

Value bag_of_counts(Value x, Value counts, BagMode mode) {
  return apply_op(std::make_shared<BagOp>(mode, std::nullopt), {x, counts});
}

}  // namespace lockstep
