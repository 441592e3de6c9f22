// attention_gradient.cpp has the formulas. Two panels of queries at a time: the sums for dk and dv are loaded and
// stored once for both.
#include <array>
#include <optional>

#include "lockstep/kernels/native/paired_attention.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kPanels = 2;
constexpr std::int64_t kQueries = kPanels * kPanel;

struct BackwardScratch {
  BackwardScratch(const AttentionGeometry& g, float* begin)
      : all(begin), keys(padded_keys(g)), width(rounded_up(g.width, kPanel)) {
    for (Bf16** rows : {&of_keys.k, &of_keys.v, &of_keys.k_lanes}) *rows = take_bf16(all, keys * width);
    for (float** rows : {&of_keys.dk, &of_keys.dv}) *rows = all.take(keys * width);
    for (Bf16** rows : {&queries.q, &queries.y, &queries.dy, &queries.q_lanes, &queries.dy_lanes, &queries.q_pairs,
                        &queries.dy_pairs})
      *rows = take_bf16(all, kQueries * width);
    queries.dq = all.take(kQueries * width);
    for (float** lanes : {&queries.log_sums, &queries.delta}) *lanes = all.take(kQueries);
    for (float** rows : {&block.x, &block.dp}) *rows = all.take(kKeyBlock * kPanel);
    block.dropped = g.options.dropout > 0 ? all.take(kKeyBlock * kPanel) : nullptr;
    for (Bf16** rows : {&block.p_rows, &block.ds_rows}) *rows = take_bf16(all, kKeyBlock * kQueries);
    block.ds_pairs = take_bf16(all, kKeyBlock * kPanel);
  }
  struct Keys {
    Bf16 *k, *v;     // [keys][width]
    Bf16* k_lanes;   // [width][keys]
    float *dk, *dv;  // [keys][width]
  };
  struct Queries {
    Bf16 *q, *y, *dy;          // [kQueries][width]
    Bf16 *q_lanes, *dy_lanes;  // of each panel: [width / 2][kPanel][2]
    Bf16 *q_pairs, *dy_pairs;  // [width / kPanel][kQueries / 2][kPanel][2]
    float* dq;                 // of each panel: [width][kPanel]
    float *log_sums, *delta;   // [kQueries]
  };
  struct Block {
    float *x, *dp, *dropped;  // [kKeyBlock][kPanel]
    Bf16 *p_rows, *ds_rows;   // [kKeyBlock][kQueries]
    Bf16* ds_pairs;           // [kKeyBlock / 2][kPanel][2]
  };
  Scratch all;
  std::int64_t keys, width;  // rounded up
  Keys of_keys;
  Queries queries;
  Block block;
};

class Backward {
 public:
  Backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<Bf16>& arrays,
           const NativeKernels& kernels)
      : g_(g),
        run_(run),
        a_(arrays),
        k_(kernels),
        pairs_(*pair_table(kernels)),
        scale_(static_cast<float>(g.options.scale)) {}
  const PairTable& pairs() const { return pairs_; }

  void load_keys(std::int64_t n, std::int64_t group, const BackwardScratch& s) const {
    const std::int64_t first = key_offset(n, group);
    copy(a_.x.k + first, g_.key_stride(), g_.keys, s.keys, s.of_keys.k);
    copy(a_.x.v + first, g_.key_stride(), g_.keys, s.keys, s.of_keys.v);
    k_.pair_memory.transpose({.rows = s.keys,
                              .columns = s.width,
                              .from = s.of_keys.k,
                              .from_stride = s.width,
                              .to = s.of_keys.k_lanes,
                              .to_stride = s.keys});
    std::fill_n(s.of_keys.dk, s.keys * s.width, 0.0F);
    std::fill_n(s.of_keys.dv, s.keys * s.width, 0.0F);
  }

  void store_keys(std::int64_t n, std::int64_t group, const BackwardScratch& s) const {
    const std::int64_t first = key_offset(n, group);
    const auto store = [&](const float* from, float factor, Bf16* to) {
      k_.pair_memory.store({.rows = g_.keys,
                            .columns = g_.width,
                            .from = from,
                            .from_stride = s.width,
                            .factor = factor,
                            .to = to + first,
                            .to_stride = g_.key_stride()});
    };
    store(s.of_keys.dk, scale_, a_.dx.k);
    store(s.of_keys.dv, 1, a_.dx.v);
  }

  // kQueries queries from `first` on.
  void run_queries(std::int64_t n, std::int64_t h, std::int64_t first, const BackwardScratch& s) const {
    load_queries(n, h, first, s);
    std::array<std::optional<QueryPanel>, kPanels> panels;
    Range keys{g_.keys, 0};
    for (std::int64_t i = 0; i < kPanels && first + i * kPanel < g_.queries; ++i) {
      const QueryPanel& p = panels[static_cast<std::size_t>(i)].emplace(g_, run_, n, h, first + i * kPanel);
      if (p.keys.begin < p.keys.end) keys = {std::min(keys.begin, p.keys.begin), std::max(keys.end, p.keys.end)};
    }
    for (std::int64_t at = keys.begin; at < keys.end; at += kKeyBlock) {
      const std::int64_t count = std::min(kKeyBlock, keys.end - at);
      for (std::int64_t i = 0; i < kPanels; ++i) add_panel(panels[static_cast<std::size_t>(i)], i, at, count, s);
      add_rows(count, s.block.p_rows, s.queries.dy_pairs, s.of_keys.dv + at * s.width, s.width);
      add_rows(count, s.block.ds_rows, s.queries.q_pairs, s.of_keys.dk + at * s.width, s.width);
    }
    float factors[kPanel];
    std::fill_n(factors, kPanel, scale_);
    for (std::int64_t i = 0; i < kPanels && panels[static_cast<std::size_t>(i)]; ++i)
      k_.attention_bf16.transpose_out({.rows = panels[static_cast<std::size_t>(i)]->rows,
                                       .columns = g_.width,
                                       .from = s.queries.dq + i * kPanel * s.width,
                                       .factors = factors,
                                       .to = a_.dx.q + query_offset(n, h, first + i * kPanel),
                                       .to_stride = g_.query_stride()});
  }

 private:
  std::int64_t key_offset(std::int64_t n, std::int64_t group) const {
    return n * g_.keys * g_.key_stride() + group * g_.width;
  }
  std::int64_t query_offset(std::int64_t n, std::int64_t h, std::int64_t first) const {
    return (n * g_.queries + first) * g_.query_stride() + h * g_.width;
  }
  void copy(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t padded, Bf16* to) const {
    k_.pair_memory.copy_bf16({.rows = rows,
                              .columns = g_.width,
                              .from = from,
                              .from_stride = stride,
                              .padded_rows = padded,
                              .to = to,
                              .to_stride = rounded_up(g_.width, kPanel)});
  }

  void load_queries(std::int64_t n, std::int64_t h, std::int64_t first, const BackwardScratch& s) const {
    const std::int64_t rows = std::min(kQueries, g_.queries - first);
    const std::int64_t result = (n * g_.queries + first) * g_.result_stride() + h * g_.width;
    const BackwardScratch::Queries& q = s.queries;
    copy(a_.x.q + query_offset(n, h, first), g_.query_stride(), rows, kQueries, q.q);
    copy(a_.result + result, g_.result_stride(), rows, kQueries, q.y);
    copy(a_.dresult + result, g_.result_stride(), rows, kQueries, q.dy);
    const auto matrix = [&](const Bf16* from, Bf16* to) {
      return PairMemoryTable::Matrix{
          .rows = kQueries, .columns = s.width, .from = from, .from_stride = s.width, .to = to, .to_stride = 0};
    };
    k_.pair_memory.lanes(matrix(q.q, q.q_lanes));
    k_.pair_memory.lanes(matrix(q.dy, q.dy_lanes));
    k_.pair_memory.pairs(matrix(q.q, q.q_pairs));
    k_.pair_memory.pairs(matrix(q.dy, q.dy_pairs));
    k_.pair_memory.dots(kQueries, s.width, q.y, q.dy, s.width, q.delta);
    std::fill_n(q.dq, kQueries * s.width, 0.0F);
    std::fill_n(q.log_sums, kQueries, 0.0F);
    std::copy_n(a_.log_sums + (n * g_.heads + h) * g_.queries + first, rows, q.log_sums);
  }

  // The weights and slopes of a panel for the keys [begin, begin + count), and its dq.
  void add_panel(const std::optional<QueryPanel>& p, std::int64_t i, std::int64_t begin, std::int64_t count,
                 const BackwardScratch& s) const {
    const std::int64_t padded = rounded_up(count, kPanel);
    if (!p || p->keys.end <= begin || p->keys.begin >= begin + count) {
      for (std::int64_t r = 0; r < padded; ++r) {
        for (Bf16* rows : {s.block.p_rows, s.block.ds_rows}) std::fill_n(rows + r * kQueries + i * kPanel, kPanel, 0);
      }
      return;
    }
    const std::int64_t lanes = i * kPanel * s.width;
    const auto scores = [&](const Bf16* a, const Bf16* b, float* c) {
      pairs_.set({.rows = padded,
                  .depth = s.width,
                  .panels = 1,
                  .a = a + begin * s.width,
                  .a_stride = s.width,
                  .b = b + lanes,
                  .c = c,
                  .c_stride = kPanel});
    };
    scores(s.of_keys.k, s.queries.q_lanes, s.block.x);
    scores(s.of_keys.v, s.queries.dy_lanes, s.block.dp);
    make_slopes(*p, i, begin, count, s);
    pairs_.add({.rows = s.width,
                .depth = padded,
                .panels = 1,
                .a = s.of_keys.k_lanes + begin,
                .a_stride = s.keys,
                .b = s.block.ds_pairs,
                .c = s.queries.dq + lanes,
                .c_stride = kPanel});
  }

  void make_slopes(const QueryPanel& p, std::int64_t i, std::int64_t begin, std::int64_t count,
                   const BackwardScratch& s) const {
    const BackwardScratch::Block& b = s.block;
    const std::int64_t padded = rounded_up(count, kPanel);
    const float *log_sums = s.queries.log_sums + i * kPanel, *delta = s.queries.delta + i * kPanel;
    Bf16 *const p_rows = b.p_rows + i * kPanel, *const ds_rows = b.ds_rows + i * kPanel;
    const float scale = finish_scores(g_, p, begin, count, b.x, k_.attention);
    if (g_.options.dropout == 0) {
      k_.pair_attention.slopes({.keys = padded,
                                .x = b.x,
                                .dp = b.dp,
                                .scale = scale,
                                .log_sums = log_sums,
                                .delta = delta,
                                .p_rows = p_rows,
                                .ds_rows = ds_rows,
                                .stride = kQueries,
                                .ds_pairs = b.ds_pairs});
      return;
    }
    k_.attention.weights(padded, b.x, log_sums);
    drop(g_, run_, p, begin, count, {.x = b.x, .y = b.dropped, .other = b.dp}, k_.attention);
    std::fill_n(b.dropped + count * kPanel, (padded - count) * kPanel, 0.0F);
    k_.attention.slopes(padded, b.x, delta, b.dp);
    k_.pair_attention.pack(padded, b.dropped, p_rows, kQueries, nullptr);
    k_.pair_attention.pack(padded, b.dp, ds_rows, kQueries, b.ds_pairs);
  }

  // to [count][width] += rows [count][kQueries] times a matrix of the queries.
  void add_rows(std::int64_t count, const Bf16* rows, const Bf16* by_query, float* to, std::int64_t width) const {
    pairs_.add({.rows = rounded_up(count, kPanel),
                .depth = kQueries,
                .panels = width / kPanel,
                .a = rows,
                .a_stride = kQueries,
                .b = by_query,
                .c = to,
                .c_stride = width});
  }

  const AttentionGeometry& g_;
  const AttentionRun& run_;
  const AttentionBackward<Bf16>& a_;
  const NativeKernels& k_;
  const PairTable& pairs_;
  float scale_;
};

}  // namespace

std::int64_t paired_backward_floats(const AttentionGeometry& g) { return BackwardScratch(g, nullptr).all.used(); }

void paired_backward(const AttentionGeometry& g, const AttentionRun& run, const AttentionBackward<Bf16>& arrays,
                     std::int64_t workers, float* scratch, const NativeKernels& kernels) {
  const Backward backward(g, run, arrays, kernels);
  for_items(g.samples * g.key_heads, workers, scratch, paired_backward_floats(g), [&](std::int64_t i, float* own) {
    const BackwardScratch s(g, own);
    const PairScope scope(backward.pairs());
    const std::int64_t n = i / g.key_heads, group = i % g.key_heads;
    backward.load_keys(n, group, s);
    for (std::int64_t h = group * g.group(); h < (group + 1) * g.group(); ++h) {
      for (std::int64_t first = 0; first < g.queries; first += kQueries) backward.run_queries(n, h, first, s);
    }
    backward.store_keys(n, group, s);
  });
}

}  // namespace lockstep::kernels::native
