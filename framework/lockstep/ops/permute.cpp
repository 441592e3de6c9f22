#include "lockstep/ops/permute.h"

#include <algorithm>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

// The sizes of x as (samples, channels, height, width), where samples counts all dimensions in front of the channels.
struct ImageSizes {
  std::int64_t samples, channels, height, width;
};

ImageSizes image_sizes(std::string_view op, Value x, std::int64_t factor) {
  const Shape& s = x.shape();
  check(s.rank() >= 3, op, "{}: input is {}, expected (..., channels, height, width)", axes::path(x), x.type().str());
  check(factor > 0, op, "{}: the factor is {}, expected at least 1", axes::path(x), factor);
  const int c = s.rank() - 3;
  return {axes::outer(s, c), s[c], s[c + 1], s[c + 2]};
}

// The shape of x with these sizes of its last three dimensions.
Shape with_image(Value x, std::int64_t channels, std::int64_t height, std::int64_t width) {
  Shape shape = x.shape();
  shape[shape.rank() - 3] = channels;
  shape[shape.rank() - 2] = height;
  shape[shape.rank() - 1] = width;
  return shape;
}

}  // namespace

std::vector<Type> PermuteOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Shape& x = inputs[0].shape;
  std::vector<int> sorted = axes_;
  std::ranges::sort(sorted);
  std::vector<std::int64_t> dims, order(axes_.begin(), axes_.end());
  bool fits = static_cast<int>(axes_.size()) == x.rank();
  for (std::size_t k = 0; k < sorted.size(); ++k) fits = fits && sorted[k] == static_cast<int>(k);
  check(fits, name(), "{}: axes ({}) of {}, expected each of its {} axes once", path, axes::text(order),
        inputs[0].str(), x.rank());
  for (const int axis : axes_) dims.push_back(x[axis]);
  return {{Shape(std::move(dims)), inputs[0].dtype}};
}

std::vector<Value> PermuteOp::gradient(const Request& r) const {
  std::vector<int> back(axes_.size());
  for (std::size_t k = 0; k < axes_.size(); ++k) back[static_cast<std::size_t>(axes_[k])] = static_cast<int>(k);
  return {permute(r.gradients[0], back)};
}

std::string PermuteOp::attributes() const { return axes::text({axes_.begin(), axes_.end()}); }

Value permute(Value x, const std::vector<int>& axes) {
  const std::vector<int> order = axes::of("permute", x, axes);
  auto op = std::make_shared<PermuteOp>(order);
  const Type type = op->infer(axes::path(x), std::span(&x.type(), 1))[0];
  int last = -1;
  bool moves = false;
  for (const int axis : order) {
    if (x.shape()[axis] == 1) continue;
    moves = moves || axis < last;
    last = axis;
  }
  if (moves) return apply_op(std::move(op), {x});
  return type == x.type() ? x : reshape(x, type.shape);
}

Value transpose(Value x, int a, int b) {
  a = axes::of("transpose", x, a);
  b = axes::of("transpose", x, b);
  std::vector<int> order(static_cast<std::size_t>(x.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(a)], order[static_cast<std::size_t>(b)]);
  return permute(x, order);
}

Value pixel_shuffle(Value x, std::int64_t factor) {
  const auto [n, c, h, w] = image_sizes("pixel_shuffle", x, factor);
  const std::int64_t r = factor;
  check(c % (r * r) == 0, "pixel_shuffle", "{}: input {} has {} channels, expected a multiple of {}", axes::path(x),
        x.type().str(), c, r * r);
  const Value parts = reshape(x, Shape{n, c / (r * r), r, r, h, w});
  return reshape(permute(parts, {0, 1, 4, 2, 5, 3}), with_image(x, c / (r * r), h * r, w * r));
}

Value pixel_unshuffle(Value x, std::int64_t factor) {
  const auto [n, c, h, w] = image_sizes("pixel_unshuffle", x, factor);
  const std::int64_t r = factor;
  check(h % r == 0 && w % r == 0, "pixel_unshuffle", "{}: input {} has images of {}x{}, expected multiples of {}",
        axes::path(x), x.type().str(), h, w, r);
  const Value parts = reshape(x, Shape{n, c, h / r, r, w / r, r});
  return reshape(permute(parts, {0, 1, 3, 5, 2, 4}), with_image(x, c * r * r, h / r, w / r));
}

}  // namespace lockstep
