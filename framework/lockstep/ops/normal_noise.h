// Numbers from the normal distribution of mean 0 and variance 1, one set per sample, new in every step. A number
// depends on (seed, call site, number of the use of that site in the model, step, sample id, logical element) alone, as
// the choice of dropout does, so it is the same at every world size and batch split. It has no slope.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

// (step, sample ids) -> numbers (samples, sample shape).
class NormalNoiseOp : public Op {
 public:
  NormalNoiseOp(Shape sample, DType dtype, std::uint64_t key) : sample_(std::move(sample)), dtype_(dtype), key_(key) {}
  std::uint64_t key() const { return key_; }
  std::string_view name() const override { return "normal_noise"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;

 private:
  Shape sample_;
  DType dtype_;
  std::uint64_t key_;
};

// Returns numbers of the type and shape of `like`, whose first dimension is the samples of the batch, in training and
// at evaluation. `call_site`, the module path, distinguishes two sources of noise of one model, and each use of one
// site, also by a dropout, draws other numbers (Graph::random_key). Throws Error for a scalar, and for another type
// than f32 and f64.
Value normal_noise_like(Value like, std::string_view call_site);

}  // namespace lockstep
