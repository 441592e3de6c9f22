// The part that forward and backward attention do alike: panels of queries, blocks of keys, and their scores.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "lockstep/kernels/native/attention.h"
#include "lockstep/kernels/native/workers.h"

namespace lockstep::kernels::native {

inline constexpr std::int64_t kKeyBlock = 128;

template <class T>
const AttentionMemory<T>& attention_memory(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.attention_f32;
  } else {
    return kernels.attention_bf16;
  }
}

// kPanel queries of one head.
struct QueryPanel {
  QueryPanel(const AttentionGeometry& g, const AttentionRun& run, std::int64_t sample, std::int64_t head,
             std::int64_t first_query)
      : n(sample),
        h(head),
        first(first_query),
        rows(std::min<std::int64_t>(kPanel, g.queries - first_query)),
        position(run.offset(sample) + first_query),
        slope(g.slopes.empty() ? 0 : static_cast<float>(g.slopes[static_cast<std::size_t>(head)])) {
    const Range begin = run.visible(n, position), end = run.visible(n, position + rows - 1);
    keys = {begin.begin, std::max(begin.begin, end.end)};
    all = intersection(begin, end);
    segments = run.segments(n);
    for (std::int64_t l = 0; segments != nullptr && l < kPanel; ++l)
      of_queries[l] = segments[std::min(position + l, g.keys - 1)];
  }

  std::int64_t n, h, first, rows, position;
  float slope;
  Range keys, all;  // keys: at least one query sees the key; all: every query does
  const std::int32_t* segments;
  std::int32_t of_queries[kPanel] = {};
};

// Some of the panels of the queries that read one key head of a sample.
struct KeyHeadPart {
  std::int64_t n, group;
  std::int64_t per_head;  // panels of one head
  Range panels;           // counted over the heads

  template <class Body>
  void for_panels(const AttentionGeometry& g, const AttentionRun& run, const Body& body) const {
    for (std::int64_t p = panels.begin; p < panels.end; ++p)
      body(QueryPanel(g, run, n, group * g.group() + p / per_head, p % per_head * kPanel));
  }
};

// Calls item(KeyHeadPart, scratch) for all panels, as for_items does. A key head is cut into parts where there are few
// of them.
template <class Item>
void for_key_heads(const AttentionGeometry& g, std::int64_t workers, float* scratch, std::int64_t size,
                   const Item& item) {
  constexpr std::int64_t kItemsPerWorker = 4;  // at least, where there are so many panels
  const std::int64_t key_heads = g.samples * g.key_heads, per_head = rounded_up(g.queries, kPanel) / kPanel;
  const std::int64_t panels = g.group() * per_head;
  std::int64_t parts = 1;
  if (workers > 1 && key_heads > 0 && key_heads < 2 * workers)
    parts = std::clamp<std::int64_t>((kItemsPerWorker * workers + key_heads - 1) / key_heads, 1,
                                     std::max<std::int64_t>(1, panels));
  for_items(key_heads * parts, workers, scratch, size, [&](std::int64_t i, float* own) {
    const std::int64_t head = i / parts;
    item(KeyHeadPart{.n = head / g.key_heads,
                     .group = head % g.key_heads,
                     .per_head = per_head,
                     .panels = part_of(panels, parts, i % parts)},
         own);
  });
}

// The sums of a panel after its last block; top, sum and factor [kPanel], y [width][kPanel].
struct PanelSums {
  float *top, *sum, *factor, *y;
};
template <class T>
void finish_panel(const AttentionGeometry& g, const QueryPanel& p, const PanelSums& s, const AttentionForward<T>& a,
                  const NativeKernels& kernels) {
  float* const logs = a.log_sums + (p.n * g.heads + p.h) * g.queries + p.first;
  kernels.pointwise_f32.run[static_cast<std::size_t>(pointwise::Code::Log)](kPanel, s.sum, nullptr, nullptr, s.factor);
  for (std::int64_t l = 0; l < p.rows; ++l) logs[l] = s.top[l] + s.factor[l];
  for (std::int64_t l = 0; l < kPanel; ++l) s.factor[l] = s.sum[l] == 0 ? 0 : 1 / s.sum[l];
  attention_memory<T>(kernels).transpose_out(
      {.rows = p.rows,
       .columns = g.width,
       .from = s.y,
       .factors = s.factor,
       .to = a.result + (p.n * g.queries + p.first) * g.result_stride() + p.h * g.width,
       .to_stride = g.result_stride()});
}

// Calls add_block(first key, number of keys), which adds to the sums, for all blocks of keys of a panel, and writes the
// result. `width`: of y.
template <class T, class AddBlock>
void sum_panel(const AttentionGeometry& g, const QueryPanel& p, const PanelSums& s, std::int64_t width,
               const AttentionForward<T>& a, const NativeKernels& kernels, const AddBlock& add_block) {
  std::fill_n(s.top, kPanel, -std::numeric_limits<float>::infinity());
  std::fill_n(s.sum, kPanel, 0.0F);
  std::fill_n(s.y, width * kPanel, 0.0F);
  for (std::int64_t at = p.keys.begin; at < p.keys.end; at += kKeyBlock)
    add_block(at, std::min(kKeyBlock, p.keys.end - at));
  finish_panel(g, p, s, a, kernels);
}

// Whether arrays of T are multiplied in pairs.
template <class T>
bool in_pairs(const NativeKernels& kernels) {
  return std::is_same_v<T, Bf16> && pair_table(kernels) != nullptr;
}

// Adds to the scores of the keys [begin, begin + count) what is not their product, and hides what is not seen.
inline void add_bias(const AttentionGeometry& g, const QueryPanel& p, std::int64_t begin, std::int64_t count, float* x,
                     const AttentionTable& level) {
  const auto add = [&](std::int64_t first, std::int64_t end) {
    if (first >= end) return;
    level.bias({.keys = end - first,
                .first_key = first,
                .first_query = p.position,
                .x = x + (first - begin) * kPanel,
                .causal = g.options.causal,
                .window = g.options.window,
                .slope = p.slope,
                .key_segments = p.segments != nullptr ? p.segments + first : nullptr,
                .query_segments = p.segments != nullptr ? p.of_queries : nullptr});
  };
  const std::int64_t end = begin + count;
  if (p.segments != nullptr || p.slope != 0 || p.all.begin >= p.all.end) return add(begin, end);
  add(begin, std::min(end, p.all.begin));
  add(std::max(begin, p.all.end), end);
}

// y and other: null or itself; see AttentionTable::Drop.
struct Dropped {
  const float* x;
  float* y;
  float* other;
};
inline void drop(const AttentionGeometry& g, const AttentionRun& run, const QueryPanel& p, std::int64_t begin,
                 std::int64_t count, const Dropped& arrays, const AttentionTable& level) {
  level.drop({.keys = count,
              .key = g.options.key,
              .high = run.draw(p.n),
              .first = static_cast<std::uint64_t>((p.h * g.queries + p.first) * g.keys + begin),
              .stride = static_cast<std::uint64_t>(g.keys),
              .threshold = static_cast<std::uint32_t>(std::ceil(g.options.dropout * 0x1p24)),
              .kept = static_cast<float>(1 / (1 - g.options.dropout)),
              .x = arrays.x,
              .y = arrays.y,
              .other = arrays.other});
}

// One panel of a product: c [rows][kPanel] = or += a [rows][depth] b [depth][kPanel].
inline ProductTable::Rows panel_product(std::int64_t rows, std::int64_t depth, const float* a, std::int64_t a_stride,
                                        const float* b, float* c) {
  return {.rows = rows, .depth = depth, .panels = 1, .a = a, .a_stride = a_stride, .b = b, .c = c, .c_stride = kPanel};
}

}  // namespace lockstep::kernels::native
