// Axes of a value in another order; transposition, and the exchange of channels and pixels, are cases of it.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// y[i of axes[0], i of axes[1], ...] = x[...]: axis k of y is axis axes[k] of x. Moves elements of any type. The
// gradient is the inverse permutation.
class PermuteOp : public Op {
 public:
  explicit PermuteOp(std::vector<int> axes) : axes_(std::move(axes)) {}
  const std::vector<int>& axes() const { return axes_; }
  std::string_view name() const override { return "permute"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  std::string attributes() const override;

 private:
  std::vector<int> axes_;
};

// Returns x with its axes in this order, each named once (-1 is the last one). Where only dimensions of 1 move, nothing
// is copied. Throws Error where `axes` is no permutation.
Value permute(Value x, const std::vector<int>& axes);
// Returns x with two axes exchanged.
Value transpose(Value x, int a, int b);

// Shi et al., "Real-time single image and video super-resolution using an efficient sub-pixel convolutional neural
// network", 2016: (..., C r^2, H, W) -> (..., C, H r, W r), and back, as in PyTorch. Throws Error where sizes do not
// divide.
Value pixel_shuffle(Value x, std::int64_t factor);
Value pixel_unshuffle(Value x, std::int64_t factor);

}  // namespace lockstep
