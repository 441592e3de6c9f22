#include "lockstep/ops/fourier.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

using FourierKind = FourierOptions::Kind;

constexpr int kMostFourierAxes = 3;

// (..., tail) for a value (..., `dropped` dimensions).
Shape with_tail(const Shape& shape, int dropped, const Shape& tail, bool is_complex) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end() - dropped);
  dims.insert(dims.end(), tail.dims().begin(), tail.dims().end());
  if (is_complex) dims.push_back(2);
  return Shape(std::move(dims));
}

// Whether the dimensions in front of the last (`is_complex`: two) are `tail`.
bool ends_with(const Shape& shape, const Shape& tail, bool is_complex) {
  const int last = is_complex ? 1 : 0;
  if (shape.rank() < tail.rank() + last || (is_complex && shape[shape.rank() - 1] != 2)) return false;
  return std::equal(tail.dims().begin(), tail.dims().end(), shape.dims().end() - last - tail.rank());
}

double norm_factor(FftNorm norm, bool inverse, const Shape& sizes) {
  const double n = static_cast<double>(sizes.elements());
  if (norm == FftNorm::Ortho) return 1 / std::sqrt(n);
  return (norm == FftNorm::Forward) != inverse ? 1 / n : 1;
}

// The last `axes` dimensions, of complex values those before the pair.
Shape last_axes(std::string_view site, Value x, int axes, bool is_complex) {
  const int rank = x.shape().rank() - (is_complex ? 1 : 0);
  check(axes >= 1 && axes <= kMostFourierAxes, site, "{}: {} axes, expected 1 to {}", axes::path(x), axes,
        kMostFourierAxes);
  check(rank >= axes, site, "{}: input is {}, expected {} axes{}", axes::path(x), x.type().str(), axes,
        is_complex ? " and a last one of length 2" : "");
  const auto end = x.shape().dims().begin() + rank;
  return Shape(std::vector<std::int64_t>(end - axes, end));
}

Value apply_fourier(Value x, FourierOptions options) {
  return apply_op(std::make_shared<FourierOp>(std::move(options)), {cast(x, sum_type(x.dtype()))});
}

Value complex_transform(std::string_view site, Value x, int axes, FftNorm norm, bool inverse) {
  const Shape sizes = last_axes(site, x, axes, true);
  return apply_fourier(x, {.kind = FourierKind::Complex,
                           .sizes = sizes,
                           .kept = sizes,
                           .inverse = inverse,
                           .scale = norm_factor(norm, inverse, sizes)});
}

Shape half_of(Shape sizes) {
  std::int64_t& last = sizes[sizes.rank() - 1];
  last = last / 2 + 1;
  return sizes;
}

Value to_half(Value x, Shape sizes, Shape kept, FftNorm norm) {
  const double scale = norm_factor(norm, false, sizes);
  return apply_fourier(
      x, {.kind = FourierKind::ToHalf, .sizes = std::move(sizes), .kept = std::move(kept), .scale = scale});
}

Value from_half(Value x, const Shape& sizes, Shape kept, FftNorm norm) {
  return apply_fourier(x, {.kind = FourierKind::FromHalf,
                           .sizes = sizes,
                           .kept = std::move(kept),
                           .inverse = true,
                           .scale = norm_factor(norm, true, sizes)});
}

void check_fourier_sizes(std::string_view site, Value x, const Shape& sizes) {
  check(sizes.rank() >= 1 && sizes.rank() <= kMostFourierAxes, site, "{}: sizes {}, expected those of 1 to {} axes",
        axes::path(x), sizes.str(), kMostFourierAxes);
}

}  // namespace

std::vector<Type> FourierOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const FourierOptions& o = options_;
  const Type& x = inputs[0];
  check(x.dtype == DType::F32 || x.dtype == DType::F64 || x.dtype == DType::BF16, name(),
        "{}: input is {}, expected a floating type", path, x.str());
  const bool from_complex = o.kind != FourierKind::ToHalf, to_complex = o.kind != FourierKind::FromHalf;
  const Shape& from = o.kind == FourierKind::ToHalf ? o.sizes : o.kept;
  const Shape& to = o.kind == FourierKind::ToHalf ? o.kept : o.sizes;
  check(o.sizes.rank() >= 1 && o.sizes.rank() <= kMostFourierAxes && o.kept.rank() == o.sizes.rank(), name(),
        "{}: sizes {} and frequencies {}, expected those of 1 to {} axes", path, o.sizes.str(), o.kept.str(),
        kMostFourierAxes);
  for (int i = 0; i < o.sizes.rank(); ++i) {
    const bool half = o.kind != FourierKind::Complex && i == o.sizes.rank() - 1;
    const std::int64_t most = half ? o.sizes[i] / 2 + 1 : o.sizes[i];
    check(
        o.sizes[i] >= 1 && o.kept[i] >= 1 && o.kept[i] <= most && (o.kind != FourierKind::Complex || o.kept[i] == most),
        name(), "{}: {} of the frequencies of an axis of length {}, expected {}{}", path, o.kept[i], o.sizes[i],
        o.kind == FourierKind::Complex ? "" : "1 to ", most);
  }
  check(ends_with(x.shape, from, from_complex), name(), "{}: input is {}, expected (..., {}{}", path, x.str(),
        from.str().substr(1, from.str().size() - 2), from_complex ? ", 2)" : ")");
  return {{with_tail(x.shape, from.rank() + (from_complex ? 1 : 0), to, to_complex), x.dtype}};
}

// The adjoint of a complex transform is the other sign's. Let R take a real line to its half spectrum and C take a half
// spectrum to a real line, both without factors. C counts the middle frequencies twice, R's adjoint counts them once,
// so with D = 1/2 there and 1 elsewhere R^T = C D and C^T = D^-1 R.
std::vector<Value> FourierOp::gradient(const Request& r) const {
  FourierOptions adjoint = options_;
  adjoint.inverse = !options_.inverse;
  if (options_.kind == FourierKind::ToHalf) {
    adjoint.kind = FourierKind::FromHalf;
    adjoint.middle = options_.middle / 2;
  } else if (options_.kind == FourierKind::FromHalf) {
    adjoint.kind = FourierKind::ToHalf;
    adjoint.middle = options_.middle * 2;
  }
  return {apply_op(std::make_shared<FourierOp>(std::move(adjoint)), {r.gradients[0]})};
}

double FourierOp::flops(std::span<const Type> inputs, std::span<const Type> outputs) const {
  const Shape& signal = options_.kind == FourierKind::ToHalf ? inputs[0].shape : outputs[0].shape;
  const double n = static_cast<double>(signal.elements());
  return 2.5 * n * std::log2(static_cast<double>(std::max<std::int64_t>(options_.sizes.elements(), 1)));
}

std::string FourierOp::attributes() const {
  const FourierOptions& o = options_;
  std::string text = o.kind == FourierKind::Complex ? "complex" : o.kind == FourierKind::ToHalf ? "real" : "to real";
  text += o.inverse ? " inverse " : " ";
  text += o.sizes.str();
  if (o.kind != FourierKind::Complex) text += formatted(" kept {} middle {}", o.kept.str(), o.middle);
  return text + formatted(" scale {}", o.scale);
}

Value fft(Value x, int axes, FftNorm norm) { return complex_transform("fft", x, axes, norm, false); }
Value ifft(Value x, int axes, FftNorm norm) { return complex_transform("ifft", x, axes, norm, true); }

Value rfft(Value x, int axes, FftNorm norm) {
  const Shape sizes = last_axes("rfft", x, axes, false);
  return to_half(x, sizes, half_of(sizes), norm);
}

Value irfft(Value x, const Shape& sizes, FftNorm norm) {
  check_fourier_sizes("irfft", x, sizes);
  return from_half(x, sizes, half_of(sizes), norm);
}

Value rfft_low(Value x, const Shape& modes, FftNorm norm) {
  check_fourier_sizes("rfft_low", x, modes);
  const Shape sizes = last_axes("rfft_low", x, modes.rank(), false);
  Shape kept = modes;
  for (int i = 0; i < modes.rank() - 1; ++i) {
    kept[i] = 2 * modes[i];
    check(modes[i] >= 1 && kept[i] <= sizes[i], "rfft_low",
          "{}: {} modes of each sign of an axis of length {}, expected 1 to {}", axes::path(x), modes[i], sizes[i],
          sizes[i] / 2);
  }
  return to_half(x, sizes, std::move(kept), norm);
}

Value irfft_low(Value x, const Shape& sizes, FftNorm norm) {
  check_fourier_sizes("irfft_low", x, sizes);
  return from_half(x, sizes, last_axes("irfft_low", x, sizes.rank(), true), norm);
}

}  // namespace lockstep
