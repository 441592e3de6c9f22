#include "lockstep/kernels/native/pair_products.h"

#include <algorithm>

#include "lockstep/kernels/native/attention_panels.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kGroup = 64;  // samples that a thread takes at once

// The scratch memory of a thread. Forward: the vectors as columns, and products of all with all. Backward: the slopes
// of all pairs as a symmetric matrix, the vectors as rows, and their gradients.
struct ForwardMemory {
  ForwardMemory(const PairGeometry& g, float* begin) : all(begin), columns(rounded_up(g.vectors, kPanel)) {
    transposed = all.take(columns * g.width);
    products = all.take(g.vectors * columns);
  }
  Scratch all;
  std::int64_t columns;
  float *transposed, *products;  // [columns / kPanel][width][kPanel], [vectors][columns]
};
struct BackwardMemory {
  BackwardMemory(const PairGeometry& g, float* begin) : all(begin), columns(rounded_up(g.width, kPanel)) {
    slopes = all.take(g.vectors * g.vectors);
    rows = all.take(g.vectors * columns);
    result = all.take(g.vectors * columns);
  }
  Scratch all;
  std::int64_t columns;
  float *slopes, *rows, *result;  // [vectors][vectors], [columns / kPanel][vectors][kPanel], [vectors][columns]
};

template <class Memory>
std::size_t scratch_of(const PairGeometry& g, std::int64_t workers) {
  return static_cast<std::size_t>(workers * Memory(g, nullptr).all.used()) * sizeof(float);
}

// Calls work(sample, memory) for each sample.
template <class Memory, class Work>
void for_samples(const PairGeometry& g, std::int64_t workers, float* scratch, const Work& work) {
  for_items((g.samples + kGroup - 1) / kGroup, workers, scratch, Memory(g, nullptr).all.used(),
            [&](std::int64_t group, float* own) {
              const Memory memory(g, own);
              const std::int64_t end = std::min(g.samples, (group + 1) * kGroup);
              for (std::int64_t n = group * kGroup; n < end; ++n) work(n, memory);
            });
}

void fill_slopes(std::int64_t vectors, const float* dy, float* slopes) {
  for (std::int64_t i = 0; i < vectors; ++i) {
    slopes[i * vectors + i] = 0;
    for (std::int64_t j = 0; j < i; ++j) slopes[i * vectors + j] = slopes[j * vectors + i] = *dy++;
  }
}

}  // namespace

std::size_t pair_products_scratch(const PairGeometry& g, std::int64_t workers) {
  return scratch_of<ForwardMemory>(g, workers);
}

std::size_t pair_products_gradient_scratch(const PairGeometry& g, std::int64_t workers) {
  return scratch_of<BackwardMemory>(g, workers);
}

void pair_products(const PairGeometry& g, const float* x, float* y, std::int64_t workers, float* scratch,
                   const NativeKernels& kernels) {
  for_samples<ForwardMemory>(g, workers, scratch, [&](std::int64_t n, const ForwardMemory& m) {
    const float* const vectors = x + n * g.elements();
    for (std::int64_t at = 0; at < g.vectors; at += kPanel)
      kernels.attention_f32.transpose_in({.rows = std::min<std::int64_t>(kPanel, g.vectors - at),
                                          .columns = g.width,
                                          .from = vectors + at * g.width,
                                          .from_stride = g.width,
                                          .scale = 1,
                                          .to = m.transposed + at * g.width,
                                          .to_stride = kPanel});
    kernels.product_f32.set({.rows = g.vectors,
                             .depth = g.width,
                             .panels = m.columns / kPanel,
                             .a = vectors,
                             .a_stride = g.width,
                             .b = m.transposed,
                             .c = m.products,
                             .c_stride = m.columns});
    float* to = y + n * g.pairs();
    for (std::int64_t i = 1; i < g.vectors; ++i) to = std::copy_n(m.products + i * m.columns, i, to);
  });
}

void pair_products_gradient(const PairGeometry& g, const float* dy, const float* x, float* dx, std::int64_t workers,
                            float* scratch, const NativeKernels& kernels) {
  for_samples<BackwardMemory>(g, workers, scratch, [&](std::int64_t n, const BackwardMemory& m) {
    fill_slopes(g.vectors, dy + n * g.pairs(), m.slopes);
    kernels.attention_f32.copy_panels({.rows = g.vectors,
                                       .columns = g.width,
                                       .from = x + n * g.elements(),
                                       .from_stride = g.width,
                                       .scale = 1,
                                       .to = m.rows,
                                       .to_stride = 0});
    kernels.product_f32.set({.rows = g.vectors,
                             .depth = g.vectors,
                             .panels = m.columns / kPanel,
                             .a = m.slopes,
                             .a_stride = g.vectors,
                             .b = m.rows,
                             .c = m.result,
                             .c_stride = m.columns});
    for (std::int64_t i = 0; i < g.vectors; ++i)
      std::copy_n(m.result + i * m.columns, g.width, dx + n * g.elements() + i * g.width);
  });
}

}  // namespace lockstep::kernels::native
