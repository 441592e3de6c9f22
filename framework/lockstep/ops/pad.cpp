#include "lockstep/ops/pad.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/shape_axes.h"
#include "lockstep/ops/slice.h"

namespace lockstep {
namespace {

std::string padding_text(PadMode mode, const std::vector<AxisPadding>& padding) {
  std::string text(name_of(mode));
  for (const AxisPadding& p : padding) text += formatted(" {}+{}", p.before, p.after);
  return text;
}

// Crops where the padding is negative, then places the rest in the larger value.
Value pad_with_constant(Value x, const std::vector<AxisPadding>& padding, double value) {
  std::vector<AxisRange> kept, placed;
  Shape shape = x.shape();
  bool grows = false;
  for (int d = 0; d < shape.rank(); ++d) {
    const auto [before, after] = padding[static_cast<std::size_t>(d)];
    const std::int64_t first = std::max<std::int64_t>(-before, 0), last = std::max<std::int64_t>(-after, 0);
    const std::int64_t front = std::max<std::int64_t>(before, 0), back = std::max<std::int64_t>(after, 0);
    const std::int64_t length = shape[d] - first - last;
    check(length >= 0, "pad", "{}: {} and {} elements are cut off axis {} of {}, expected no more than it has",
          axes::path(x), first, last, d, x.type().str());
    kept.push_back({.start = first, .length = length});
    placed.push_back({.start = front, .length = length});
    shape[d] = front + length + back;
    grows = grows || front + back > 0;
  }
  const Value part = slice(x, std::move(kept));
  return grows ? place(part, std::move(shape), std::move(placed), value) : part;
}

}  // namespace

std::string_view name_of(PadMode mode) {
  switch (mode) {
    case PadMode::Constant:
      return "constant";
    case PadMode::Reflect:
      return "reflect";
    case PadMode::Replicate:
      return "replicate";
    case PadMode::Circular:
      return "circular";
  }
  return "?";
}

std::int64_t padded_index(PadMode mode, std::int64_t i, std::int64_t size) {
  switch (mode) {
    case PadMode::Reflect:
      return i < 0 ? -i : i < size ? i : 2 * (size - 1) - i;
    case PadMode::Replicate:
      return std::clamp<std::int64_t>(i, 0, size - 1);
    case PadMode::Circular:
      return i < 0 ? i + size : i < size ? i : i - size;
    case PadMode::Constant:
      break;
  }
  return -1;
}

std::vector<Type> PadOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const Type& x = inputs[0];
  check(static_cast<int>(padding_.size()) == x.shape.rank(), name(), "{}: padding of {} axes for {}", path,
        padding_.size(), x.str());
  check(mode_ != PadMode::Constant, name(), "{}: the mode is constant, expected one that copies elements", path);
  Shape shape = x.shape;
  for (int d = 0; d < shape.rank(); ++d) {
    const auto [before, after] = padding_[static_cast<std::size_t>(d)];
    if (before == 0 && after == 0) continue;
    const std::int64_t n = x.shape[d], most = mode_ == PadMode::Reflect ? n - 1 : n;
    const bool fits = mode_ == PadMode::Replicate ? n > 0 : before <= most && after <= most;
    check(fits && n + before + after >= 0 && before >= -n && after >= -n, name(),
          "{}: padding {} + {} of axis {} of {} by mode {}, expected {}", path, before, after, d, x.str(),
          name_of(mode_),
          mode_ == PadMode::Replicate ? std::string("at least 1 element to repeat")
                                      : formatted("at most {} elements at each end", most));
    shape[d] = n + before + after;
  }
  return {{std::move(shape), x.dtype}};
}

std::vector<Value> PadOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<PadGradientOp>(mode_, padding_, r.inputs[0].shape()), {r.gradients[0]})};
}

std::string PadOp::attributes() const { return padding_text(mode_, padding_); }

std::vector<Value> PadGradientOp::gradient(const Request& r) const {
  return {apply_op(std::make_shared<PadOp>(mode_, padding_), {r.gradients[0]})};
}

std::string PadGradientOp::attributes() const { return padding_text(mode_, padding_); }

Value pad(Value x, const std::vector<std::int64_t>& padding, PadMode mode, double value) {
  const int rank = x.shape().rank(), padded = static_cast<int>(padding.size() / 2);
  check(padding.size() % 2 == 0 && padded <= rank, "pad",
        "{}: padding ({}) of {}, expected two numbers for each of at most {} axes", axes::path(x), axes::text(padding),
        x.type().str(), rank);
  std::vector<AxisPadding> by_axis(static_cast<std::size_t>(rank));
  for (int k = 0; k < padded; ++k) {
    const auto at = 2 * static_cast<std::size_t>(k);
    by_axis[static_cast<std::size_t>(rank - 1 - k)] = {padding[at], padding[at + 1]};
  }
  if (mode == PadMode::Constant) return pad_with_constant(x, by_axis, value);
  if (std::ranges::all_of(by_axis, [](const AxisPadding& p) { return p == AxisPadding{}; })) return x;
  return apply_op(std::make_shared<PadOp>(mode, std::move(by_axis)), {x});
}

}  // namespace lockstep
