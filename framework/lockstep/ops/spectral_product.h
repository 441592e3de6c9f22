// Products of complex values per mode, summed over channels, as the layer of a Fourier neural operator multiplies a
// spectrum (Li et al., "Fourier neural operator for parametric partial differential equations" (2021), eq. 5). A
// complex number is a last axis of length 2.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

struct SpectralProductOptions {
  // Of x (N, I, modes..., 2), w (I, O, modes..., 2) and y (N, O, modes..., 2), two are read and one is made.
  enum class Result : std::uint8_t {
    Output,   // (x, w) -> y[n, o] = sum over i of x[n, i] w[i, o]
    Input,    // (y, w) -> x[n, i] = sum over o of y[n, o] w[i, o]
    Weights,  // (x, y) -> w[i, o] = sum over n of x[n, i] y[n, o]
  };
  Result result = Result::Output;
  bool conjugate_first = false, conjugate_second = false;  // of the two that are read
};

// Linear in each operand, so the gradient is made of the same op: it can be differentiated any number of times.
class SpectralProductOp : public Op {
 public:
  explicit SpectralProductOp(SpectralProductOptions options) : options_(options) {}
  const SpectralProductOptions& options() const { return options_; }
  std::string_view name() const override { return "spectral_product"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;
  double flops(std::span<const Type> inputs, std::span<const Type> outputs) const override;
  std::string attributes() const override;

 private:
  SpectralProductOptions options_;
};

// Returns (N, O, modes..., 2) for x (N, I, modes..., 2) and w (I, O, modes..., 2), with as many axes of modes as there
// are. bf16 is converted to f32. Throws Error where shapes do not fit.
Value spectral_product(Value x, Value weight);

}  // namespace lockstep
