// With f the weight of a position's slope, e the smoothing and y its target, the slope of logit v is
//   dz_v = f (p_v - e / V - (1 - e) [v = y]),  dx = sum_v dz_v w_v,  dw_v = sum over positions of dz_v x
#include <algorithm>

#include "lockstep/kernels/native/paired_vocabulary.h"

namespace lockstep::kernels::native {
namespace {

struct BackwardScratch {
  BackwardScratch(const VocabularyShape& s, std::int64_t workers, float* begin)
      : all(begin),
        positions(rounded_up(s.positions, kPanel)),
        width(rounded_up(s.features, kPanel)),
        stride(positions + kPanel) {
    chunk = vocabulary_chunk(s, positions);
    x = all.take(positions * s.features);
    dx = all.take(positions * s.features);
    x_rows = all.take(positions * width);
    slopes = all.take(chunk * stride);
    table = all.take(s.features * chunk);
    factors = all.take(2 * positions);
    dtable = all.take(chunk * width);
    blocks = all.take(workers * kWords * kPanel);
  }
  float* log_sums() const { return factors + positions; }

  Scratch all;
  std::int64_t positions, width, stride;  // rounded up; of a row of slopes, which no power of two is
  std::int64_t chunk;                     // words
  float *x, *dx;                          // [panels][features][kPanel]
  float* x_rows;                          // for each kPositions: [width / kPanel][positions][kPanel]
  float* slopes;                          // [chunk][stride]
  float* table;                           // [features][chunk]
  float* factors;                         // [positions], and the logarithms of the sums behind them
  float* dtable;                          // [chunk][width]
  float* blocks;                          // of each worker: [kWords][kPanel]
};

template <class T>
class Backward {
 public:
  Backward(const VocabularyShape& s, const VocabularyInputs<T, float>& in, const VocabularyGradients<T>& out,
           const BackwardScratch& scratch, const NativeKernels& kernels)
      : s_(s), in_(in), out_(out), b_(scratch), k_(kernels) {}

  void prepare() const {
    load_slope_factors(s_, in_, out_, b_.positions, b_.factors, b_.log_sums());
    std::fill_n(b_.dx, b_.positions * s_.features, 0.0F);
    const AttentionMemory<T>& memory = attention_memory<T>(k_);
    parallel_for(b_.positions / kPanel, 4 * s_.features * kPanel, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p)
        memory.transpose_in(rows_of<T>(in_.x, p * kPanel, std::min<std::int64_t>(kPanel, s_.positions - p * kPanel),
                                       b_.x + p * kPanel * s_.features, kPanel));
    });
    parallel_for((s_.positions + kPositions - 1) / kPositions, s_.features * kPositions,
                 [&](std::int64_t begin, std::int64_t end) {
                   for (std::int64_t i = begin; i < end; ++i)
                     memory.copy_panels(
                         rows_of<T>(in_.x, i * kPositions, positions_of(i), b_.x_rows + i * kPositions * b_.width, 0));
                 });
  }

  // The table's rows from word `begin` on become columns.
  void load_table(std::int64_t begin, std::int64_t count) const {
    parallel_for((count + kPanel - 1) / kPanel, s_.features * kPanel, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t p = first; p < end; ++p)
        k_.attention_f32.transpose_in(rows_of<float>(in_.table, begin + p * kPanel,
                                                     std::min<std::int64_t>(kPanel, count - p * kPanel),
                                                     b_.table + p * kPanel, b_.chunk));
    });
  }

  // The slopes of the words [begin, begin + count) at kPanel positions; adds to dx.
  void run_panel(std::int64_t panel, std::int64_t begin, std::int64_t count, float* block) const {
    const std::int64_t first = panel * kPanel;
    for (std::int64_t w = 0; w < count; w += kWords) {
      const std::int64_t words = std::min(kWords, count - w);
      const float* const x = b_.x + first * s_.features;
      k_.product_f32.set(
          panel_product(words, s_.features, in_.table + (begin + w) * s_.features, s_.features, x, block));
      vocabulary_slopes(s_, in_, {first, begin + w, words, b_.factors, b_.log_sums()}, block, k_);
      k_.vocabulary.copy(words, block, b_.slopes + w * b_.stride + first, b_.stride);
      k_.product_f32.add(panel_product(s_.features, words, b_.table + w, b_.chunk, block, b_.dx + first * s_.features));
    }
  }

  // dtable of the words [begin + w, begin + w + count), by the slopes of all positions.
  void sum_words(std::int64_t begin, std::int64_t w, std::int64_t count) const {
    float* const to = b_.dtable + w * b_.width;
    std::fill_n(to, count * b_.width, 0.0F);
    for (std::int64_t i = 0; i * kPositions < s_.positions; ++i) {
      k_.product_f32.add({.rows = count,
                          .depth = positions_of(i),
                          .panels = b_.width / kPanel,
                          .a = b_.slopes + w * b_.stride + i * kPositions,
                          .a_stride = b_.stride,
                          .b = b_.x_rows + i * kPositions * b_.width,
                          .c = to,
                          .c_stride = b_.width});
    }
    k_.attention_f32.copy_out(count, s_.features, to, b_.width, out_.dtable + (begin + w) * s_.features, s_.features);
    for (std::int64_t r = 0; out_.dbias != nullptr && r < count; ++r) {
      const float* const slopes = b_.slopes + (w + r) * b_.stride;
      double sum = 0;
      for (std::int64_t m = 0; m < s_.positions; ++m) sum += static_cast<double>(slopes[m]);
      out_.dbias[begin + w + r] = static_cast<float>(sum);
    }
  }

 private:
  std::int64_t positions_of(std::int64_t i) const { return std::min(kPositions, s_.positions - i * kPositions); }
  template <class U>
  typename AttentionMemory<U>::In rows_of(const U* from, std::int64_t first, std::int64_t rows, float* to,
                                          std::int64_t to_stride) const {
    return {.rows = rows,
            .columns = s_.features,
            .from = from + first * s_.features,
            .from_stride = s_.features,
            .scale = 1,
            .to = to,
            .to_stride = to_stride};
  }

  const VocabularyShape& s_;
  const VocabularyInputs<T, float>& in_;
  const VocabularyGradients<T>& out_;
  const BackwardScratch& b_;
  const NativeKernels& k_;
};

}  // namespace

template <class T>
std::size_t vocabulary_backward_scratch(const VocabularyShape& s, std::int64_t workers, const NativeKernels& kernels) {
  const std::int64_t floats =
      in_pairs<T>(kernels) ? paired_vocabulary_floats(s, workers) : BackwardScratch(s, workers, nullptr).all.used();
  return static_cast<std::size_t>(floats) * sizeof(float);
}

template <class T>
void vocabulary_backward(const VocabularyShape& s, const VocabularyInputs<T, float>& in,
                         const VocabularyGradients<T>& out, std::int64_t workers, float* scratch,
                         const NativeKernels& kernels) {
  check_targets(s, in.targets);
  if constexpr (std::is_same_v<T, Bf16>) {
    if (in_pairs<T>(kernels)) return paired_vocabulary_backward(s, in, out, workers, scratch, kernels);
  }
  const BackwardScratch b(s, workers, scratch);
  const Backward<T> backward(s, in, out, b, kernels);
  backward.prepare();
  for (std::int64_t begin = 0; begin < s.vocabulary; begin += b.chunk) {
    const std::int64_t count = std::min(b.chunk, s.vocabulary - begin);
    backward.load_table(begin, count);
    for_items(b.positions / kPanel, workers, b.blocks, kWords * kPanel,
              [&](std::int64_t panel, float* block) { backward.run_panel(panel, begin, count, block); });
    constexpr std::int64_t kRows = 32;  // of the table in one item
    for_items((count + kRows - 1) / kRows, workers, nullptr, 0, [&](std::int64_t i, float*) {
      backward.sum_words(begin, i * kRows, std::min(kRows, count - i * kRows));
    });
  }
  store_dx(s, b.dx, s.features, out.dx, kernels);
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                    \
  template std::size_t vocabulary_backward_scratch<T>(const VocabularyShape&, std::int64_t, const NativeKernels&); \
  template void vocabulary_backward<T>(const VocabularyShape&, const VocabularyInputs<T, float>&,                  \
                                       const VocabularyGradients<T>&, std::int64_t, float*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
