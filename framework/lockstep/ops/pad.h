// Padding at the ends of axes with elements of the value itself or with a constant, as torch.nn.functional.pad.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

enum class PadMode : std::uint8_t {
  Constant,
  Reflect,    // c b | a b c | b a: the edge is not repeated; fewer elements than the axis has
  Replicate,  // a a | a b c | c c: the edge is repeated
  Circular,   // b c | a b c | a b: as many elements as the axis has at most
};
std::string_view name_of(PadMode mode);  // PyTorch's name: "reflect"

// Elements in front of the first and behind the last one along an axis; negative numbers cut elements off.
struct AxisPadding {
  std::int64_t before = 0, after = 0;
  bool operator==(const AxisPadding&) const = default;
};

// The index along an axis of `size` elements that padding with a mode other than Constant reads for position i, which
// counts from the first element of the value itself.
std::int64_t padded_index(PadMode mode, std::int64_t i, std::int64_t size);

// Pads with elements of the value, one AxisPadding per axis; moves elements of any type. A constant is PlaceOp's work
// (ops/slice.h).
class PadOp : public Op {
 public:
  PadOp(PadMode mode, std::vector<AxisPadding> padding) : mode_(mode), padding_(std::move(padding)) {}
  PadMode mode() const { return mode_; }
  const std::vector<AxisPadding>& padding() const { return padding_; }
  std::string_view name() const override { return "pad"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  PadMode mode_;
  std::vector<AxisPadding> padding_;
};

// dy -> dx of `shape`: each element of x gets the sum of dy over the positions that are its copies, in the order of the
// positions, in f64. The gradient is the padding again.
class PadGradientOp : public Op {
 public:
  PadGradientOp(PadMode mode, std::vector<AxisPadding> padding, Shape shape)
      : mode_(mode), padding_(std::move(padding)), shape_(std::move(shape)) {}
  PadMode mode() const { return mode_; }
  const std::vector<AxisPadding>& padding() const { return padding_; }
  std::string_view name() const override { return "pad_gradient"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override {
    return {{shape_, inputs[0].dtype}};
  }
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  PadMode mode_;
  std::vector<AxisPadding> padding_;
  Shape shape_;
};

// Pads x; `padding` begins with the last axis, as in PyTorch: {left, right}, {left, right, top, bottom}, ... . Negative
// numbers cut elements off. Constant pads with `value`. Throws Error where the mode needs more elements than an
// axis has.
Value pad(Value x, const std::vector<std::int64_t>& padding, PadMode mode = PadMode::Constant, double value = 0);

}  // namespace lockstep
