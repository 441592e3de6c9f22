#include "lockstep/kernels/native/attention.h"

#include "lockstep/kernels/native/paired_attention.h"

namespace lockstep::kernels::native {
namespace {

struct ForwardScratch {
  ForwardScratch(const AttentionGeometry& g, float* begin) : all(begin), keys(rounded_up(g.keys, kPanel)) {
    k = all.take(keys * width_of(g));
    v = all.take(keys * g.width);
    q = all.take(g.width * kPanel);
    y = all.take(g.width * kPanel);
    scores = all.take(kKeyBlock * kPanel);
    for (float** lanes : {&top, &sum, &factor}) *lanes = all.take(kPanel);
  }
  static std::int64_t width_of(const AttentionGeometry& g) { return rounded_up(g.width, kPanel); }
  Scratch all;
  std::int64_t keys;  // of a row of v
  // k [S][width], v [D][keys], q [D][kPanel], y [D][kPanel], scores [kKeyBlock][kPanel]
  float *k, *v, *q, *y, *scores, *top, *sum, *factor;
};

template <class T>
class Forward {
 public:
  Forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<T>& arrays,
          const NativeKernels& kernels)
      : g_(g), run_(run), a_(arrays), k_(kernels), memory_(attention_memory<T>(kernels)) {}

  void load_keys(std::int64_t n, std::int64_t group, const ForwardScratch& s) const {
    const std::int64_t first = n * g_.keys * g_.key_stride() + group * g_.width;
    memory_.copy_in({.rows = g_.keys,
                     .columns = g_.width,
                     .from = a_.x.k + first,
                     .from_stride = g_.key_stride(),
                     .scale = 1,
                     .to = s.k,
                     .to_stride = ForwardScratch::width_of(g_)});
    for (std::int64_t at = 0; at < g_.keys; at += kPanel) {
      memory_.transpose_in({.rows = std::min<std::int64_t>(kPanel, g_.keys - at),
                            .columns = g_.width,
                            .from = a_.x.v + first + at * g_.key_stride(),
                            .from_stride = g_.key_stride(),
                            .scale = 1,
                            .to = s.v + at,
                            .to_stride = s.keys});
    }
  }

  void run_panel(const QueryPanel& p, const ForwardScratch& s) const {
    memory_.transpose_in({.rows = p.rows,
                          .columns = g_.width,
                          .from = a_.x.q + (p.n * g_.queries + p.first) * g_.query_stride() + p.h * g_.width,
                          .from_stride = g_.query_stride(),
                          .scale = static_cast<float>(g_.options.scale),
                          .to = s.q,
                          .to_stride = kPanel});
    sum_panel(g_, p, {.top = s.top, .sum = s.sum, .factor = s.factor, .y = s.y}, g_.width, a_, k_,
              [&](std::int64_t begin, std::int64_t count) { add_block(p, begin, count, s); });
  }

 private:
  // The keys [begin, begin + count).
  void add_block(const QueryPanel& p, std::int64_t begin, std::int64_t count, const ForwardScratch& s) const {
    const std::int64_t width = ForwardScratch::width_of(g_);
    k_.product_f32.set(panel_product(count, g_.width, s.k + begin * width, width, s.q, s.scores));
    add_bias(g_, p, begin, count, s.scores, k_.attention);
    k_.attention.softmax({.keys = count, .x = s.scores, .top = s.top, .sum = s.sum, .factor = s.factor});
    if (g_.options.dropout > 0)
      drop(g_, run_, p, begin, count, {.x = s.scores, .y = s.scores, .other = nullptr}, k_.attention);
    if (begin > p.keys.begin) k_.attention.multiply(g_.width, s.factor, s.y);
    k_.product_f32.add(panel_product(g_.width, count, s.v + begin, s.keys, s.scores, s.y));
  }

  const AttentionGeometry& g_;
  const AttentionRun& run_;
  const AttentionForward<T>& a_;
  const NativeKernels& k_;
  const AttentionMemory<T>& memory_;
};

}  // namespace

template <class T>
std::size_t attention_forward_scratch(const AttentionGeometry& g, std::int64_t workers, const NativeKernels& kernels) {
  const bool paired = in_pairs<T>(kernels);
  const std::int64_t floats = paired ? paired_forward_floats(g) : ForwardScratch(g, nullptr).all.used();
  return static_cast<std::size_t>(workers * floats) * sizeof(float);
}

template <class T>
void attention_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<T>& arrays,
                       std::int64_t workers, float* scratch, const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (in_pairs<T>(kernels)) return paired_forward(g, run, arrays, workers, scratch, kernels);
  }
  const Forward<T> forward(g, run, arrays, kernels);
  for_key_heads(g, workers, scratch, ForwardScratch(g, nullptr).all.used(), [&](const KeyHeadPart& part, float* own) {
    const ForwardScratch s(g, own);
    forward.load_keys(part.n, part.group, s);
    part.for_panels(g, run, [&](const QueryPanel& p) { forward.run_panel(p, s); });
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                    \
  template std::size_t attention_forward_scratch<T>(const AttentionGeometry&, std::int64_t, const NativeKernels&); \
  template void attention_forward<T>(const AttentionGeometry&, const AttentionRun&, const AttentionForward<T>&,    \
                                     std::int64_t, float*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
