// Logits of kPanel positions, the lanes, for table.cpp. Rows are words; nothing is summed along lanes.
#pragma once

#include "lockstep/kernels/native/levels/attention.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

void vocabulary_scan(const VocabularyTable::Scan& s) {
  for_registers([&s](int first) {
    NativeF32 best = load_native(s.best + first), sum{};
    NativeU32 word;
    __builtin_memcpy(&word, s.best_word + first, sizeof word);
    for (std::int64_t w = 0; w < s.words; ++w) {
      NativeF32 x = load_native(s.x + w * kPanel + first);
      if (s.bias) {
        x = x + s.bias[w];
        store_native(s.x + w * kPanel + first, x);
      }
      const auto larger = x > best;
      best = larger ? x : best;
      word = larger ? NativeU32{} + static_cast<std::uint32_t>(s.first_word + w) : word;
      sum = sum + x;
    }
    store_native(s.best + first, best);
    store_native(s.sum + first, sum);
    __builtin_memcpy(s.best_word + first, &word, sizeof word);
  });
}

void vocabulary_slopes(const VocabularyTable::Slopes& s) {
  for_registers([&s](int first) {
    const NativeF32 log_sum = load_native(s.log_sums + first), factor = load_native(s.factors + first);
#pragma GCC unroll 4
    for (std::int64_t w = 0; w < s.words; ++w) {
      float* const row = s.x + w * kPanel + first;
      const NativeF32 x = load_native(row) + (s.bias ? s.bias[w] : 0.0F);
      store_native(row, (exponential(x - log_sum) - s.spread) * factor);
    }
  });
}

void vocabulary_copy(std::int64_t words, const float* x, float* to, std::int64_t to_stride) {
  for (std::int64_t w = 0; w < words; ++w) {
    for_registers([=](int first) { store_native(to + w * to_stride + first, load_native(x + w * kPanel + first)); });
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
