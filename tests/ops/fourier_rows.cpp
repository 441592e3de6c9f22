#include "lockstep/ops/fourier.h"

#include <cmath>
#include <complex>
#include <numbers>

#include "lockstep/ops/spectral_product.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

using Complex = std::complex<double>;
enum class Transform : std::uint8_t { Fft, Ifft, Rfft, Irfft, RfftLow, IrfftLow };

struct Setting {
  Transform transform;
  Shape lead;   // dimensions in front
  Shape sizes;  // of the transformed axes, in the signal
  FftNorm norm = FftNorm::Backward;
  Shape modes = {};  // of the two last ones
};

bool is_low(Transform t) { return t == Transform::RfftLow || t == Transform::IrfftLow; }
bool is_real(Transform t) { return t != Transform::Fft && t != Transform::Ifft; }
bool is_forward(Transform t) { return t == Transform::Fft || t == Transform::Rfft || t == Transform::RfftLow; }

// Frequencies that the spectrum holds, axis by axis; a negative one is below 0.
std::vector<std::int64_t> frequencies(const Setting& s, int axis) {
  const bool last = is_real(s.transform) && axis == s.sizes.rank() - 1;
  const std::int64_t n = s.sizes[axis], all = last ? n / 2 + 1 : n;
  std::vector<std::int64_t> result;
  if (!is_low(s.transform)) {
    for (std::int64_t k = 0; k < all; ++k) result.push_back(k);
    return result;
  }
  for (std::int64_t k = 0; k < s.modes[axis]; ++k) result.push_back(k);
  for (std::int64_t k = s.modes[axis]; !last && k > 0; --k) result.push_back(-k);
  return result;
}

Shape spectrum(const Setting& s) {
  Shape shape = s.sizes;
  for (int i = 0; i < shape.rank(); ++i) shape[i] = static_cast<std::int64_t>(frequencies(s, i).size());
  return shape;
}

std::vector<std::int64_t> index_of(const Shape& shape, std::int64_t at) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int i = shape.rank() - 1; i >= 0; --i) {
    index[static_cast<std::size_t>(i)] = at % shape[i];
    at /= shape[i];
  }
  return index;
}

// e^(sign 2 pi i (k . j / n)) for element j of the signal and entry k of the spectrum.
Complex wave(const Setting& s, std::int64_t signal, std::int64_t entry) {
  const std::vector<std::int64_t> j = index_of(s.sizes, signal), k = index_of(spectrum(s), entry);
  double turns = 0;
  for (int i = 0; i < s.sizes.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    turns += static_cast<double>(frequencies(s, i)[static_cast<std::size_t>(k[at])] * j[at] % s.sizes[i]) /
             static_cast<double>(s.sizes[i]);
  }
  return std::polar(1.0, (is_forward(s.transform) ? -2 : 2) * std::numbers::pi * turns);
}

double factor(const Setting& s) {
  const double n = static_cast<double>(s.sizes.elements());
  if (s.norm == FftNorm::Ortho) return 1 / std::sqrt(n);
  return (s.norm == FftNorm::Forward) == is_forward(s.transform) ? 1 / n : 1;
}

// How often an entry of a half spectrum stands for a frequency of the whole one.
double multiplicity(const Setting& s, std::int64_t entry) {
  const int last = s.sizes.rank() - 1;
  const std::int64_t k = index_of(spectrum(s), entry).back(), n = s.sizes[last];
  return k == 0 || 2 * k == n ? 1 : 2;
}

// Sums over all elements. A half spectrum's sum is the real part of half of the terms, each counted for its conjugate;
// in that way imaginary parts that no real signal has drop out.
Array reference(const Setting& s, const Array& x) {
  const bool forward = is_forward(s.transform), real = is_real(s.transform);
  const std::int64_t signal = s.sizes.elements(), entries = spectrum(s).elements(), items = s.lead.elements();
  std::vector<std::int64_t> dims = s.lead.dims();
  const Shape axes = forward ? spectrum(s) : s.sizes;
  dims.insert(dims.end(), axes.dims().begin(), axes.dims().end());
  if (forward || !real) dims.push_back(2);
  Array y{Shape(dims)};
  for (std::int64_t item = 0; item < items; ++item) {
    for (std::int64_t j = 0; j < signal; ++j) {
      for (std::int64_t k = 0; k < entries; ++k) {
        const Complex w = wave(s, j, k) * factor(s);
        const std::int64_t at = item * signal + j, of = item * entries + k;
        if (forward) {
          const Complex term = w * (real ? Complex(x[at]) : Complex(x[2 * at], x[2 * at + 1]));
          y[2 * of] += term.real();
          y[2 * of + 1] += term.imag();
        } else {
          const Complex term = w * Complex(x[2 * of], x[2 * of + 1]);
          y[real ? at : 2 * at] += term.real() * (real ? multiplicity(s, k) : 1);
          if (!real) y[2 * at + 1] += term.imag();
        }
      }
    }
  }
  return y;
}

Value apply(const Setting& s, Value x) {
  const int axes = s.sizes.rank();
  switch (s.transform) {
    case Transform::Fft:
      return fft(x, axes, s.norm);
    case Transform::Ifft:
      return ifft(x, axes, s.norm);
    case Transform::Rfft:
      return rfft(x, axes, s.norm);
    case Transform::Irfft:
      return irfft(x, s.sizes, s.norm);
    case Transform::RfftLow:
      return rfft_low(x, s.modes, s.norm);
    case Transform::IrfftLow:
      return irfft_low(x, s.sizes, s.norm);
  }
  return x;
}

Row row(std::string config, Setting s) {
  std::vector<std::int64_t> dims = s.lead.dims();
  const bool to_real = is_real(s.transform) && is_forward(s.transform);
  const Shape axes = to_real ? s.sizes : spectrum(s);
  dims.insert(dims.end(), axes.dims().begin(), axes.dims().end());
  if (!to_real) dims.push_back(2);
  return {.op = "fourier",
          .config = std::move(config),
          .operands = {{Shape(dims)}},
          .trace = [s](auto v) { return apply(s, v[0]); },
          .reference = [s](auto in) { return reference(s, in[0]); }};
}

// out[n, o, k] = sum over i of x[n, i, k] w[i, o, k]
Array spectral_reference(const Array& x, const Array& w) {
  const std::int64_t samples = x.shape[0], in = x.shape[1], out = w.shape[1];
  Shape shape = x.shape;
  shape[1] = out;
  Array y(shape);
  const std::int64_t modes = x.shape.elements() / (samples * in * 2);
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        for (std::int64_t k = 0; k < modes; ++k) {
          const std::int64_t a = 2 * ((n * in + i) * modes + k), b = 2 * ((i * out + o) * modes + k);
          const Complex term = Complex(x[a], x[a + 1]) * Complex(w[b], w[b + 1]);
          y[2 * ((n * out + o) * modes + k)] += term.real();
          y[2 * ((n * out + o) * modes + k) + 1] += term.imag();
        }
      }
    }
  }
  return y;
}

Row spectral_row(std::string config, Shape x, Shape w) {
  return {.op = "spectral_product",
          .config = std::move(config),
          .operands = {{std::move(x)}, {std::move(w)}},
          .trace = [](auto v) { return spectral_product(v[0], v[1]); },
          .reference = [](auto in) { return spectral_reference(in[0], in[1]); }};
}

}  // namespace

std::vector<Row> fourier_rows() {
  using enum Transform;
  using enum FftNorm;
  return {
      row("complex", {Fft, {2}, {12}}),
      row("complex_without_samples_in_front", {Fft, {}, {7}, Ortho}),
      row("complex_inverse", {Ifft, {3}, {10}}),
      row("complex_two_axes", {Fft, {2}, {3, 4}, Forward}),
      row("complex_two_axes_inverse", {Ifft, {2}, {6, 5}, Ortho}),
      row("complex_three_axes_inverse", {Ifft, {1}, {2, 3, 4}, Forward}),
      row("real_even", {Rfft, {2}, {10}}),
      row("real_odd", {Rfft, {2}, {9}, Forward}),
      row("real_of_one", {Rfft, {3}, {1}}),
      row("real_of_two", {Rfft, {3}, {2}, Ortho}),
      row("real_large_prime", {Rfft, {1}, {34}}),
      row("real_more_lines_than_lanes", {Rfft, {3, 11}, {4}}),
      row("real_two_axes", {Rfft, {2}, {4, 6}, Ortho}),
      row("real_two_odd_axes", {Rfft, {2}, {5, 3}}),
      row("real_three_axes", {Rfft, {1, 2}, {2, 3, 4}}),
      row("to_real_even", {Irfft, {2}, {10}}),
      row("to_real_odd", {Irfft, {2}, {9}, Ortho}),
      row("to_real_of_one", {Irfft, {3}, {1}}),
      row("to_real_of_two", {Irfft, {3}, {2}}),
      row("to_real_two_axes", {Irfft, {2}, {3, 6}}),
      row("to_real_three_axes", {Irfft, {2}, {2, 2, 5}, Forward}),
      row("low_of_one_axis", {RfftLow, {2}, {12}, Backward, {3}}),
      row("low_of_two_axes", {RfftLow, {2}, {7, 8}, Backward, {2, 3}}),
      row("low_of_three_axes", {RfftLow, {1}, {4, 3, 5}, Ortho, {2, 1, 2}}),
      row("low_to_real_of_one_axis", {IrfftLow, {2}, {11}, Backward, {4}}),
      row("low_to_real_of_two_axes", {IrfftLow, {2}, {7, 8}, Backward, {2, 5}}),
      row("low_to_real_of_three_axes", {IrfftLow, {1}, {4, 3, 6}, Ortho, {1, 1, 2}}),
      row("low_of_many_items", {RfftLow, {17}, {2, 4}, Backward, {1, 2}}),
      spectral_row("one_axis", {2, 3, 5, 2}, {3, 2, 5, 2}),
      spectral_row("two_axes", {3, 1, 2, 3, 2}, {1, 4, 2, 3, 2}),
      spectral_row("many_modes", {1, 2, 7, 5, 2}, {2, 2, 7, 5, 2}),
  };
}

}  // namespace lockstep::optest
