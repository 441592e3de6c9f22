// The gradient of vocabulary.h for bf16 on processors that multiply pairs of bf16 numbers (native_kernels.h,
// pair_table()), and what it shares with that in f32.
#pragma once

#include <algorithm>

#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/paired_attention.h"
#include "lockstep/kernels/native/vocabulary.h"

namespace lockstep::kernels::native {

// How both gradients are cut: words of a block and of the largest chunk, slopes that are kept, and positions that a
// product for dtable sums at once.
inline constexpr std::int64_t kWords = 128, kMostChunk = 1024, kChunkElements = 1 << 22, kPositions = 256;
// Returns the words of a chunk for so many (padded) positions.
inline std::int64_t vocabulary_chunk(const VocabularyShape& s, std::int64_t positions) {
  return std::clamp<std::int64_t>(kChunkElements / std::max<std::int64_t>(1, positions) / kWords * kWords, kWords,
                                  std::min(kMostChunk, rounded_up(std::max<std::int64_t>(1, s.vocabulary), kWords)));
}

std::int64_t paired_vocabulary_floats(const VocabularyShape& s, std::int64_t workers);  // scratch memory
void paired_vocabulary_backward(const VocabularyShape& s, const VocabularyInputs<Bf16, float>& in,
                                const VocabularyGradients<Bf16>& out, std::int64_t workers, float* scratch,
                                const NativeKernels& kernels);

// The factors of slopes and the logarithms of sums, by position; `padded` of them, 0 behind the last one.
template <class T>
void load_slope_factors(const VocabularyShape& s, const VocabularyInputs<T, float>& in,
                        const VocabularyGradients<T>& out, std::int64_t padded, float* factors, float* log_sums) {
  const VocabularySlope<float> slope(s, in.targets, in.weights, out.weight_sum, out.dloss);
  for (std::int64_t m = 0; m < padded; ++m) {
    factors[m] = m < s.positions ? static_cast<float>(slope(m)) : 0;
    log_sums[m] = m < s.positions ? out.log_sums[m] : 0;
  }
}

// Logits of kPanel positions from `position` on, for `words` words from `word` on.
struct LogitBlock {
  std::int64_t position, word, words;
  const float *factors, *log_sums;  // of all positions
};
// x [words][kPanel], of logits without their bias, becomes the slopes.
template <class T>
void vocabulary_slopes(const VocabularyShape& s, const VocabularyInputs<T, float>& in, const LogitBlock& b, float* x,
                       const NativeKernels& kernels) {
  const double e = s.smoothing();
  const float* const factors = b.factors + b.position;
  kernels.vocabulary.slopes({.words = b.words,
                             .x = x,
                             .bias = in.bias != nullptr ? in.bias + b.word : nullptr,
                             .log_sums = b.log_sums + b.position,
                             .factors = factors,
                             .spread = static_cast<float>(e / static_cast<double>(s.vocabulary))});
  for (std::int64_t l = 0; l < kPanel; ++l) {
    if (factors[l] == 0) {  // no slope, also where logits are not finite
      for (std::int64_t w = 0; w < b.words; ++w) x[w * kPanel + l] = 0;
      continue;
    }
    const std::int64_t target = in.targets[b.position + l] - b.word;
    if (target >= 0 && target < b.words) x[target * kPanel + l] -= factors[l] * static_cast<float>(1 - e);
  }
}

// Writes the sums `from`, [panels][width][kPanel] of which the first `features` columns count, to dx.
template <class T>
void store_dx(const VocabularyShape& s, const float* from, std::int64_t width, T* dx, const NativeKernels& kernels) {
  const AttentionMemory<T>& memory = attention_memory<T>(kernels);
  float ones[kPanel];
  std::fill_n(ones, kPanel, 1.0F);
  parallel_for(rounded_up(s.positions, kPanel) / kPanel, 4 * s.features * kPanel,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t p = begin; p < end; ++p)
                   memory.transpose_out({.rows = std::min<std::int64_t>(kPanel, s.positions - p * kPanel),
                                         .columns = s.features,
                                         .from = from + p * kPanel * width,
                                         .factors = ones,
                                         .to = dx + p * kPanel * s.features,
                                         .to_stride = s.features});
               });
}

}  // namespace lockstep::kernels::native
