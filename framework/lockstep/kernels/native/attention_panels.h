// What forward and backward attention do alike: panels of queries, blocks of keys, and their scores.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <type_traits>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/attention.h"

namespace lockstep::kernels::native {

inline constexpr std::int64_t kKeyBlock = 128;

constexpr std::int64_t rounded_up(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }

template <class T>
const AttentionMemory<T>& attention_memory(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.attention_f32;
  } else {
    return kernels.attention_bf16;
  }
}

// Hands out parts of one worker's scratch memory, each at a multiple of a cache line.
class Scratch {
 public:
  explicit Scratch(float* begin) : begin_(begin) {}  // null: to learn the size
  float* take(std::int64_t count) {
    float* const part = begin_ != nullptr ? begin_ + used_ : nullptr;
    used_ += rounded_up(count, kLanes);
    return part;
  }
  std::int64_t used() const { return used_; }

 private:
  float* begin_;
  std::int64_t used_ = 0;
};

// Calls item(index, scratch) for each item, on `workers` threads with `size` floats of scratch memory each.
template <class Item>
void for_items(std::int64_t items, std::int64_t workers, float* scratch, std::int64_t size, const Item& item) {
  std::atomic<std::int64_t> next = 0;
  constexpr std::int64_t kMuch = 1 << 20;  // an item is long: threads are woken for few of them
  parallel_for(std::min(workers, items), kMuch, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t w = begin; w < end; ++w) {
      for (std::int64_t i = next++; i < items; i = next++) item(i, scratch + w * size);
    }
  });
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

// Adds to the scores of the keys [begin, begin + count) what is not their product, and hides what is not seen.
inline void add_bias(const AttentionGeometry& g, const QueryPanel& p, std::int64_t begin, std::int64_t count, float* x,
                     const AttentionTable& level) {
  if (p.segments == nullptr && p.slope == 0 && begin >= p.all.begin && begin + count <= p.all.end) return;
  level.bias({.keys = count,
              .first_key = begin,
              .first_query = p.position,
              .x = x,
              .causal = g.options.causal,
              .window = g.options.window,
              .slope = p.slope,
              .key_segments = p.segments != nullptr ? p.segments + begin : nullptr,
              .query_segments = p.segments != nullptr ? p.of_queries : nullptr});
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
