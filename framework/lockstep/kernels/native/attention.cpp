#include "lockstep/kernels/native/attention.h"

#include <limits>

#include "lockstep/core/math.h"
#include "lockstep/kernels/native/attention_panels.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kItemsPerWorker = 4;  // at least, where there are so many panels

// Items of one key head: each has some of the panels of its heads.
struct ForwardItems {
  ForwardItems(const AttentionGeometry& g, std::int64_t workers)
      : key_heads(g.samples * g.key_heads),
        panels(g.group() * (rounded_up(g.queries, kPanel) / kPanel)),
        parts(
            std::clamp<std::int64_t>((kItemsPerWorker * workers + key_heads - 1) / std::max<std::int64_t>(1, key_heads),
                                     1, std::max<std::int64_t>(1, panels))) {
    if (workers == 1 || key_heads >= 2 * workers) parts = 1;
  }
  std::int64_t count() const { return key_heads * parts; }
  std::int64_t key_heads, panels, parts;
};

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
    std::fill_n(s.top, kPanel, -std::numeric_limits<float>::infinity());
    std::fill_n(s.sum, kPanel, 0.0F);
    std::fill_n(s.y, g_.width * kPanel, 0.0F);
    for (std::int64_t at = p.keys.begin; at < p.keys.end; at += kKeyBlock)
      add_block(p, at, std::min(kKeyBlock, p.keys.end - at), s);
    write(p, s);
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

  void write(const QueryPanel& p, const ForwardScratch& s) const {
    float* const logs = a_.log_sums + (p.n * g_.heads + p.h) * g_.queries + p.first;
    k_.pointwise_f32.run[static_cast<std::size_t>(pointwise::Code::Log)](kPanel, s.sum, nullptr, nullptr, s.factor);
    for (std::int64_t l = 0; l < p.rows; ++l) logs[l] = s.top[l] + s.factor[l];
    for (std::int64_t l = 0; l < kPanel; ++l) s.factor[l] = s.sum[l] == 0 ? 0 : 1 / s.sum[l];
    memory_.transpose_out({.rows = p.rows,
                           .columns = g_.width,
                           .from = s.y,
                           .factors = s.factor,
                           .to = a_.result + (p.n * g_.queries + p.first) * g_.result_stride() + p.h * g_.width,
                           .to_stride = g_.result_stride()});
  }

  const AttentionGeometry& g_;
  const AttentionRun& run_;
  const AttentionForward<T>& a_;
  const NativeKernels& k_;
  const AttentionMemory<T>& memory_;
};

}  // namespace

std::size_t attention_forward_scratch(const AttentionGeometry& g, std::int64_t workers) {
  return static_cast<std::size_t>(workers * ForwardScratch(g, nullptr).all.used()) * sizeof(float);
}

template <class T>
void attention_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<T>& arrays,
                       std::int64_t workers, float* scratch, const NativeKernels& kernels) {
  const Forward<T> forward(g, run, arrays, kernels);
  const ForwardItems items(g, workers);
  const std::int64_t size = ForwardScratch(g, nullptr).all.used(), per_head = rounded_up(g.queries, kPanel) / kPanel;
  for_items(items.count(), workers, scratch, size, [&](std::int64_t i, float* own) {
    const ForwardScratch s(g, own);
    const std::int64_t n = i / items.parts / g.key_heads, group = i / items.parts % g.key_heads;
    const Range panels = part_of(items.panels, items.parts, i % items.parts);
    forward.load_keys(n, group, s);
    for (std::int64_t p = panels.begin; p < panels.end; ++p)
      forward.run_panel(QueryPanel(g, run, n, group * g.group() + p / per_head, p % per_head * kPanel), s);
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                 \
  template void attention_forward<T>(const AttentionGeometry&, const AttentionRun&, const AttentionForward<T>&, \
                                     std::int64_t, float*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
