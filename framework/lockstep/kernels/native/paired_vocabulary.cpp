// vocabulary_gradient.cpp has the formulas.
#include "lockstep/kernels/native/paired_vocabulary.h"

#include <algorithm>
#include <bit>

#include "lockstep/core/bfloat16.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kRows = 64;  // of the table in one item

struct BackwardScratch {
  BackwardScratch(const VocabularyShape& s, std::int64_t workers, float* begin)
      : all(begin),
        positions(rounded_up(s.positions, kPanel)),
        width(rounded_up(s.features, kPanel)),
        stride(positions + kPanel) {
    chunk = vocabulary_chunk(s, positions);
    x_lanes = take_bf16(all, positions * width);
    x_pairs = take_bf16(all, positions * width);
    slopes = take_bf16(all, chunk * stride);
    table = take_bf16(all, chunk * width);
    table_lanes = take_bf16(all, width * chunk);
    dx = all.take(positions * width);
    dtable = all.take(chunk * width);
    factors = all.take(positions);
    log_sums = all.take(positions);
    blocks = all.take(workers * block_floats());
  }
  static constexpr std::int64_t block_floats() { return kWords * kPanel + kWords * kPanel / 2; }

  Scratch all;
  std::int64_t positions, width, stride;  // rounded up; of a row of slopes, which no power of two is
  std::int64_t chunk;                     // words
  Bf16* x_lanes;                          // [panels][width / 2][kPanel][2]
  Bf16* x_pairs;                          // for each kPositions: [width / kPanel][positions / 2][kPanel][2]
  Bf16* slopes;                           // [chunk][stride]
  Bf16 *table, *table_lanes;              // [chunk][width], [width][chunk]
  float* dx;                              // [panels][width][kPanel]
  float* dtable;                          // [chunk][width]
  float *factors, *log_sums;              // [positions]
  float* blocks;                          // of each worker: f32 [kWords][kPanel], bf16 [kWords / 2][kPanel][2]
};

class Backward {
 public:
  Backward(const VocabularyShape& s, const VocabularyInputs<Bf16, float>& in, const VocabularyGradients<Bf16>& out,
           const BackwardScratch& scratch, const NativeKernels& kernels)
      : s_(s), in_(in), out_(out), b_(scratch), k_(kernels), pairs_(*pair_table(kernels)) {}
  const PairTable& pairs() const { return pairs_; }

  // `rows` [positions][width] is memory of dx, which is cleared behind it.
  void prepare() const {
    load_slope_factors(s_, in_, out_, b_.positions, b_.factors, b_.log_sums);
    Bf16* const rows = reinterpret_cast<Bf16*>(b_.dx);
    k_.pair_memory.copy_bf16({.rows = s_.positions,
                              .columns = s_.features,
                              .from = in_.x,
                              .from_stride = s_.features,
                              .padded_rows = b_.positions,
                              .to = rows,
                              .to_stride = b_.width});
    parallel_for(b_.positions / kPanel, b_.width * kPanel, [&](std::int64_t begin, std::int64_t end) {
      k_.pair_memory.lanes(
          matrix((end - begin) * kPanel, rows + begin * kPanel * b_.width, b_.x_lanes + begin * kPanel * b_.width, 0));
    });
    parallel_for(
        (b_.positions + kPositions - 1) / kPositions, b_.width * kPositions, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t at = begin * kPositions; at < std::min(end * kPositions, b_.positions); at += kPositions)
            k_.pair_memory.pairs(matrix(positions_from(at), rows + at * b_.width, b_.x_pairs + at * b_.width, 0));
        });
    std::fill_n(b_.dx, b_.positions * b_.width, 0.0F);
  }

  // The table's rows from word `begin` on, as rows and columns.
  void load_table(std::int64_t begin, std::int64_t count) const {
    const std::int64_t padded = rounded_up(count, kPanel);
    parallel_for(padded / kPanel, 2 * b_.width * kPanel, [&](std::int64_t first, std::int64_t end) {
      for (std::int64_t w = first * kPanel; w < end * kPanel; w += kPanel) {
        k_.pair_memory.copy_f32({.rows = std::min<std::int64_t>(kPanel, count - w),
                                 .columns = s_.features,
                                 .from = in_.table + (begin + w) * s_.features,
                                 .from_stride = s_.features,
                                 .padded_rows = kPanel,
                                 .to = b_.table + w * b_.width,
                                 .to_stride = b_.width});
        k_.pair_memory.transpose(matrix(kPanel, b_.table + w * b_.width, b_.table_lanes + w, b_.chunk));
      }
    });
  }

  // The slopes of the words [begin, begin + count) at kPanel positions; adds to dx.
  void run_panel(std::int64_t panel, std::int64_t begin, std::int64_t count, float* block) const {
    const std::int64_t first = panel * kPanel;
    Bf16* const in_pairs = reinterpret_cast<Bf16*>(block + kWords * kPanel);
    for (std::int64_t w = 0; w < count; w += kWords) {
      const std::int64_t words = std::min(kWords, count - w), padded = rounded_up(words, kPanel);
      pairs_.set({.rows = padded,
                  .depth = b_.width,
                  .panels = 1,
                  .a = b_.table + w * b_.width,
                  .a_stride = b_.width,
                  .b = b_.x_lanes + first * b_.width,
                  .c = block,
                  .c_stride = kPanel});
      vocabulary_slopes(s_, in_, {first, begin + w, words, b_.factors, b_.log_sums}, block, k_);
      std::fill_n(block + words * kPanel, (padded - words) * kPanel, 0.0F);
      k_.pair_attention.pack(padded, block, b_.slopes + w * b_.stride + first, b_.stride, in_pairs);
      pairs_.add({.rows = b_.width,
                  .depth = padded,
                  .panels = 1,
                  .a = b_.table_lanes + w,
                  .a_stride = b_.chunk,
                  .b = in_pairs,
                  .c = b_.dx + first * b_.width,
                  .c_stride = kPanel});
    }
  }

  // dtable of the words [begin + w, begin + w + count), by the slopes of all positions.
  void sum_words(std::int64_t begin, std::int64_t w, std::int64_t count) const {
    float* const to = b_.dtable + w * b_.width;
    const std::int64_t padded = rounded_up(count, kPanel);
    std::fill_n(to, padded * b_.width, 0.0F);
    for (std::int64_t at = 0; at < b_.positions; at += kPositions) {
      pairs_.add({.rows = padded,
                  .depth = positions_from(at),
                  .panels = b_.width / kPanel,
                  .a = b_.slopes + w * b_.stride + at,
                  .a_stride = b_.stride,
                  .b = b_.x_pairs + at * b_.width,
                  .c = to,
                  .c_stride = b_.width});
    }
    k_.attention_f32.copy_out(count, s_.features, to, b_.width, out_.dtable + (begin + w) * s_.features, s_.features);
    for (std::int64_t r = 0; out_.dbias != nullptr && r < count; ++r) {
      const Bf16* const slopes = b_.slopes + (w + r) * b_.stride;
      double sum = 0;
      for (std::int64_t m = 0; m < s_.positions; ++m)
        sum += static_cast<double>(static_cast<float>(std::bit_cast<BFloat16>(slopes[m])));
      out_.dbias[begin + w + r] = static_cast<float>(sum);
    }
  }

 private:
  std::int64_t positions_from(std::int64_t at) const { return std::min(kPositions, b_.positions - at); }
  PairMemoryTable::Matrix matrix(std::int64_t rows, const Bf16* from, Bf16* to, std::int64_t to_stride) const {
    return {.rows = rows, .columns = b_.width, .from = from, .from_stride = b_.width, .to = to, .to_stride = to_stride};
  }

  const VocabularyShape& s_;
  const VocabularyInputs<Bf16, float>& in_;
  const VocabularyGradients<Bf16>& out_;
  const BackwardScratch& b_;
  const NativeKernels& k_;
  const PairTable& pairs_;
};

}  // namespace

std::int64_t paired_vocabulary_floats(const VocabularyShape& s, std::int64_t workers) {
  return BackwardScratch(s, workers, nullptr).all.used();
}

void paired_vocabulary_backward(const VocabularyShape& s, const VocabularyInputs<Bf16, float>& in,
                                const VocabularyGradients<Bf16>& out, std::int64_t workers, float* scratch,
                                const NativeKernels& kernels) {
  const BackwardScratch b(s, workers, scratch);
  const Backward backward(s, in, out, b, kernels);
  backward.prepare();
  for (std::int64_t begin = 0; begin < s.vocabulary; begin += b.chunk) {
    const std::int64_t count = std::min(b.chunk, s.vocabulary - begin);
    backward.load_table(begin, count);
    for_items(b.positions / kPanel, workers, b.blocks, BackwardScratch::block_floats(),
              [&](std::int64_t panel, float* block) {
                const PairScope scope(backward.pairs());
                backward.run_panel(panel, begin, count, block);
              });
    for_items((count + kRows - 1) / kRows, workers, nullptr, 0, [&](std::int64_t i, float*) {
      const PairScope scope(backward.pairs());
      backward.sum_words(begin, i * kRows, std::min(kRows, count - i * kRows));
    });
  }
  store_dx(s, b.dx, b.width, out.dx, kernels);
}

}  // namespace lockstep::kernels::native
