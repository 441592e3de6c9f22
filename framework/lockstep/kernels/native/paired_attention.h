// attention.h for bf16 on processors that multiply pairs of bf16 numbers (native_kernels.h, pair_table()). The weights
// and their slopes are rounded to bf16 for the products with values, queries and keys, as results are; scores, sums and
// exponentials are f32. Bits depend on shapes, masks and the processor's instructions, not on threads.
#pragma once

#include "lockstep/kernels/native/attention_panels.h"

namespace lockstep::kernels::native {

std::int64_t paired_forward_floats(const AttentionGeometry& g);  // scratch memory of a worker
std::int64_t paired_backward_floats(const AttentionGeometry& g);
void paired_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<Bf16>& arrays,
                    std::int64_t workers, float* scratch, const NativeKernels& kernels);
void paired_backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<Bf16>& arrays,
                     std::int64_t workers, float* scratch, const NativeKernels& kernels);

// The thread's products between construction and destruction.
class PairScope {
 public:
  explicit PairScope(const PairTable& pairs) : pairs_(pairs) { pairs_.start(); }
  ~PairScope() { pairs_.stop(); }
  PairScope(const PairScope&) = delete;
  PairScope& operator=(const PairScope&) = delete;

 private:
  const PairTable& pairs_;
};

// Numbers of bf16 in scratch memory.
inline Bf16* take_bf16(Scratch& scratch, std::int64_t count) {
  return reinterpret_cast<Bf16*>(scratch.take((count + 1) / 2));
}

// Blocks of keys may begin anywhere and are rounded up to whole panels.
inline std::int64_t padded_keys(const AttentionGeometry& g) { return rounded_up(g.keys, kPanel) + kPanel; }

// The scores of a block beside what their product gives: x [padded][kPanel], of which `count` rows are keys. Returns
// the factor that is still to be applied.
inline float finish_scores(const AttentionGeometry& g, const QueryPanel& p, std::int64_t begin, std::int64_t count,
                           float* x, const AttentionTable& level) {
  float scale = static_cast<float>(g.options.scale);
  if (p.slope != 0 || scale < 0 || g.options.dropout > 0) {  // before what must not be scaled
    float factors[kPanel];
    std::fill_n(factors, kPanel, scale);
    level.multiply(count, factors, x);
    scale = 1;
  }
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const auto hide = [=](std::int64_t first, std::int64_t end) {
    if (first < end) std::fill_n(x + first * kPanel, (end - first) * kPanel, kHidden);
  };
  hide(0, std::min(count, p.keys.begin - begin));
  hide(std::clamp<std::int64_t>(p.keys.end - begin, 0, count), rounded_up(count, kPanel));
  add_bias(g, p, begin, count, x, level);
  return scale;
}

}  // namespace lockstep::kernels::native
