// With p the weight, m the factor of dropout, y = sum m p v and delta = y dy, for the scores scale q k:
//   dv += m p dy,  dscore = p (m dy v - delta),  dk += dscore scale q,  dq += scale dscore k
#include "lockstep/kernels/native/attention.h"
#include "lockstep/kernels/native/paired_attention.h"

namespace lockstep::kernels::native {
namespace {

struct BackwardScratch {
  BackwardScratch(const AttentionGeometry& g, float* begin)
      : all(begin), keys(rounded_up(g.keys, kPanel)), width(rounded_up(g.width, kPanel)) {
    for (float** rows : {&of_keys.k, &of_keys.v, &of_keys.dk, &of_keys.dv}) *rows = all.take(g.keys * width);
    of_keys.k_lanes = all.take(g.width * keys);
    for (float** lanes : {&panel.q, &panel.y, &panel.dy, &panel.dq}) *lanes = all.take(g.width * kPanel);
    for (float** rows : {&panel.q_rows, &panel.dy_rows}) *rows = all.take(width * kPanel);
    for (float** lanes : {&panel.log_sums, &panel.delta, &panel.factor}) *lanes = all.take(kPanel);
    for (float** rows : {&block.p, &block.ds}) *rows = all.take(kKeyBlock * kPanel);
    block.dropped = g.options.dropout > 0 ? all.take(kKeyBlock * kPanel) : block.p;
  }
  struct Keys {
    float *k, *v, *dk, *dv;  // [S][width]
    float* k_lanes;          // [D][keys]
  };
  struct Panel {
    float *q, *y, *dy, *dq;            // [D][kPanel]; q times the scale
    float *q_rows, *dy_rows;           // [width / kPanel][kPanel queries][kPanel]
    float *log_sums, *delta, *factor;  // [kPanel]
  };
  struct Block {
    float *p, *ds, *dropped;  // [kKeyBlock][kPanel]
  };
  Scratch all;
  std::int64_t keys, width;  // of rows
  Keys of_keys;
  Panel panel;
  Block block;
};

template <class T>
class Backward {
 public:
  Backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<T>& arrays,
           const NativeKernels& kernels)
      : g_(g), run_(run), a_(arrays), k_(kernels), memory_(attention_memory<T>(kernels)) {}

  void load_keys(std::int64_t n, std::int64_t group, const BackwardScratch& s) const {
    const std::int64_t first = key_offset(n, group);
    memory_.copy_in(rows_of(a_.x.k + first, s.of_keys.k, s.width));
    memory_.copy_in(rows_of(a_.x.v + first, s.of_keys.v, s.width));
    for (std::int64_t at = 0; at < g_.keys; at += kPanel) {
      memory_.transpose_in({.rows = std::min<std::int64_t>(kPanel, g_.keys - at),
                            .columns = g_.width,
                            .from = a_.x.k + first + at * g_.key_stride(),
                            .from_stride = g_.key_stride(),
                            .scale = 1,
                            .to = s.of_keys.k_lanes + at,
                            .to_stride = s.keys});
    }
    std::fill_n(s.of_keys.dk, g_.keys * s.width, 0.0F);
    std::fill_n(s.of_keys.dv, g_.keys * s.width, 0.0F);
  }

  void store_keys(std::int64_t n, std::int64_t group, const BackwardScratch& s) const {
    const std::int64_t first = key_offset(n, group);
    memory_.copy_out(g_.keys, g_.width, s.of_keys.dk, s.width, a_.dx.k + first, g_.key_stride());
    memory_.copy_out(g_.keys, g_.width, s.of_keys.dv, s.width, a_.dx.v + first, g_.key_stride());
  }

  void run_panel(const QueryPanel& p, const BackwardScratch& s) const {
    load_panel(p, s);
    for (std::int64_t at = p.keys.begin; at < p.keys.end; at += kKeyBlock)
      add_block(p, at, std::min(kKeyBlock, p.keys.end - at), s);
    std::fill_n(s.panel.factor, kPanel, static_cast<float>(g_.options.scale));
    memory_.transpose_out({.rows = p.rows,
                           .columns = g_.width,
                           .from = s.panel.dq,
                           .factors = s.panel.factor,
                           .to = a_.dx.q + query_offset(p),
                           .to_stride = g_.query_stride()});
  }

 private:
  std::int64_t key_offset(std::int64_t n, std::int64_t group) const {
    return n * g_.keys * g_.key_stride() + group * g_.width;
  }
  std::int64_t query_offset(const QueryPanel& p) const {
    return (p.n * g_.queries + p.first) * g_.query_stride() + p.h * g_.width;
  }
  typename AttentionMemory<T>::In rows_of(const T* from, float* to, std::int64_t width) const {
    return {.rows = g_.keys,
            .columns = g_.width,
            .from = from,
            .from_stride = g_.key_stride(),
            .scale = 1,
            .to = to,
            .to_stride = width};
  }

  void load_panel(const QueryPanel& p, const BackwardScratch& s) const {
    const std::int64_t result = (p.n * g_.queries + p.first) * g_.result_stride() + p.h * g_.width;
    const auto lanes = [&](const T* from, std::int64_t stride, double scale, float* to) {
      return typename AttentionMemory<T>::In{.rows = p.rows,
                                             .columns = g_.width,
                                             .from = from,
                                             .from_stride = stride,
                                             .scale = static_cast<float>(scale),
                                             .to = to,
                                             .to_stride = kPanel};
    };
    const T* const q = a_.x.q + query_offset(p);
    memory_.transpose_in(lanes(q, g_.query_stride(), g_.options.scale, s.panel.q));
    memory_.transpose_in(lanes(a_.result + result, g_.result_stride(), 1, s.panel.y));
    memory_.transpose_in(lanes(a_.dresult + result, g_.result_stride(), 1, s.panel.dy));
    memory_.copy_panels(lanes(q, g_.query_stride(), g_.options.scale, s.panel.q_rows));
    memory_.copy_panels(lanes(a_.dresult + result, g_.result_stride(), 1, s.panel.dy_rows));
    k_.attention.dots(g_.width, s.panel.y, s.panel.dy, s.panel.delta);
    std::fill_n(s.panel.dq, g_.width * kPanel, 0.0F);
    std::fill_n(s.panel.log_sums, kPanel, 0.0F);
    std::copy_n(a_.log_sums + (p.n * g_.heads + p.h) * g_.queries + p.first, p.rows, s.panel.log_sums);
  }

  // The keys [begin, begin + count).
  void add_block(const QueryPanel& p, std::int64_t begin, std::int64_t count, const BackwardScratch& s) const {
    const std::int64_t row = begin * s.width;
    k_.product_f32.set(panel_product(count, g_.width, s.of_keys.k + row, s.width, s.panel.q, s.block.p));
    add_bias(g_, p, begin, count, s.block.p, k_.attention);
    k_.attention.weights(count, s.block.p, s.panel.log_sums);
    k_.product_f32.set(panel_product(count, g_.width, s.of_keys.v + row, s.width, s.panel.dy, s.block.ds));
    if (g_.options.dropout > 0)
      drop(g_, run_, p, begin, count, {.x = s.block.p, .y = s.block.dropped, .other = s.block.ds}, k_.attention);
    k_.attention.slopes(count, s.block.p, s.panel.delta, s.block.ds);
    add_rows(p, count, s.block.dropped, s.panel.dy_rows, s.of_keys.dv + row, s.width);
    add_rows(p, count, s.block.ds, s.panel.q_rows, s.of_keys.dk + row, s.width);
    k_.product_f32.add(panel_product(g_.width, count, s.of_keys.k_lanes + begin, s.keys, s.block.ds, s.panel.dq));
  }

  // to [count][width] += by_query [count][kPanel] rows [queries][width]
  void add_rows(const QueryPanel& p, std::int64_t count, const float* by_query, const float* rows, float* to,
                std::int64_t width) const {
    k_.product_f32.add({.rows = count,
                        .depth = p.rows,
                        .panels = width / kPanel,
                        .a = by_query,
                        .a_stride = kPanel,
                        .b = rows,
                        .c = to,
                        .c_stride = width});
  }

  const AttentionGeometry& g_;
  const AttentionRun& run_;
  const AttentionBackward<T>& a_;
  const NativeKernels& k_;
  const AttentionMemory<T>& memory_;
};

}  // namespace

template <class T>
std::size_t attention_backward_scratch(const AttentionGeometry& g, std::int64_t workers, const NativeKernels& kernels) {
  const bool paired = in_pairs<T>(kernels);
  const std::int64_t floats = paired ? paired_backward_floats(g) : BackwardScratch(g, nullptr).all.used();
  return static_cast<std::size_t>(workers * floats) * sizeof(float);
}

template <class T>
void attention_backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<T>& arrays,
                        std::int64_t workers, float* scratch, const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, Bf16>) {
    if (in_pairs<T>(kernels)) return paired_backward(g, run, arrays, workers, scratch, kernels);
  }
  const Backward<T> backward(g, run, arrays, kernels);
  const std::int64_t size = BackwardScratch(g, nullptr).all.used();
  for_items(g.samples * g.key_heads, workers, scratch, size, [&](std::int64_t i, float* own) {
    const BackwardScratch s(g, own);
    const std::int64_t n = i / g.key_heads, group = i % g.key_heads;
    backward.load_keys(n, group, s);
    for (std::int64_t h = group * g.group(); h < (group + 1) * g.group(); ++h) {
      for (std::int64_t first = 0; first < g.queries; first += kPanel)
        backward.run_panel(QueryPanel(g, run, n, h, first), s);
    }
    backward.store_keys(n, group, s);
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                     \
  template std::size_t attention_backward_scratch<T>(const AttentionGeometry&, std::int64_t, const NativeKernels&); \
  template void attention_backward<T>(const AttentionGeometry&, const AttentionRun&, const AttentionBackward<T>&,   \
                                      std::int64_t, float*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
