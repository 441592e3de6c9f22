// Discrete Fourier transforms over the last axes of a value, with the conventions of torch.fft. A complex number is a
// last axis of length 2, (real part, imaginary part), as torch.view_as_real() shows it. Axes may have any length;
// powers of 2, 3 and 5 are fastest. The transforms are linear, and can be differentiated any number of times; gradients
// are those of PyTorch. All functions throw Error where shapes do not fit; bf16 is converted to f32.
#pragma once

#include <cstdint>

#include "lockstep/graph/graph.h"

namespace lockstep {

// The factor of a transform of n elements; n is the product of the transformed axes' lengths.
enum class FftNorm : std::uint8_t {
  Backward,  // 1 forward, 1/n back
  Ortho,     // 1/sqrt(n) both ways
  Forward,   // 1/n forward, 1 back
};

struct FourierOptions {
  enum class Kind : std::uint8_t { Complex, ToHalf, FromHalf };
  Kind kind = Kind::Complex;
  Shape sizes;           // of the transformed axes, in the signal
  Shape kept;            // frequencies of each axis in the spectrum: low ones, if fewer than there are
  bool inverse = false;  // the sign of the exponent is +
  double scale = 1;
  double middle = 1;  // another factor, of all frequencies of the last axis but 0 and n/2; of the two last kinds
};

// Complex: (..., sizes, 2) -> (..., sizes, 2). ToHalf: (..., sizes) -> (..., kept, 2). FromHalf: back. The adjoint of
// one is another one: a half spectrum counts each of its middle frequencies for two.
class FourierOp : public Op {
 public:
  explicit FourierOp(FourierOptions options) : options_(std::move(options)) {}
  const FourierOptions& options() const { return options_; }
  std::string_view name() const override { return "fourier"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  // 5 n log2 n for n complex numbers, half of that for real ones.
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  FourierOptions options_;
};

// The transform of complex values over the last `axes` axes of x (..., n1, ..., nd, 2), 1 to 3, and back: y[k] = sum
// over j of x[j] e^(-+2 pi i j k / n).
Value fft(Value x, int axes = 1, FftNorm norm = FftNorm::Backward);
Value ifft(Value x, int axes = 1, FftNorm norm = FftNorm::Backward);

// The transform of real values x (..., n1, ..., nd): (..., n1, ..., nd/2 + 1, 2), as the other half of the last axis
// follows from this one.
Value rfft(Value x, int axes = 1, FftNorm norm = FftNorm::Backward);
// The real values (..., sizes) of which x (..., n1, ..., nd/2 + 1, 2) is the spectrum; `sizes` are (n1, ..., nd), as
// x does not tell whether nd is odd. Imaginary parts that no real signal has are ignored.
Value irfft(Value x, const Shape& sizes, FftNorm norm = FftNorm::Backward);

// Returns the low frequencies of rfft(), without computing its high ones: frequencies 0 to modes - 1 of the last axis,
// and 0 to modes - 1 and -modes to -1 of each axis before it; the result is (..., 2 m1, ..., md, 2). A Fourier neural
// operator multiplies these by its weights.
Value rfft_low(Value x, const Shape& modes, FftNorm norm = FftNorm::Backward);
// The real values (..., sizes) of a spectrum as rfft_low() gives it; the other frequencies are 0.
Value irfft_low(Value x, const Shape& sizes, FftNorm norm = FftNorm::Backward);

}  // namespace lockstep
