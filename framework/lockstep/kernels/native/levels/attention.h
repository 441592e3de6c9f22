// The work of attention on the scores of kPanel queries, which are the lanes, for table.cpp. Rows are keys; sums run
// over rows in their order, so the bits depend neither on the level nor on threads.
#pragma once

#include "lockstep/kernels/native/levels/philox.h"
#include "lockstep/kernels/native/levels/single.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr float kMinusInfinity = -__builtin_inff();

// e^x for x up to 88, within 1 unit in the last place; 0 below -87.
LOCKSTEP_INLINE NativeF32 exponential(NativeF32 x) {
  const single::Exponential e = single::exponential(x);
  return x < -87.0F ? NativeF32{} : (1 + e.p) * single::power_of_two(e.n);
}

// Calls body(first lane) for each register of a row.
template <class Body>
LOCKSTEP_INLINE void for_registers(Body body) {
  for (int first = 0; first < kPanel; first += kNative) body(first);
}

LOCKSTEP_INLINE NativeU32 lane_numbers(int first) {
  NativeU32 numbers{};
  for (int l = 0; l < kNative; ++l) numbers[l] = static_cast<std::uint32_t>(l);
  return numbers + static_cast<std::uint32_t>(first);
}

void attention_bias(const AttentionTable::Bias& b) {
  using NativeI32 __attribute__((vector_size(kNative * 4))) = std::int32_t;
  for_registers([&b](int first) {
    const NativeI32 lanes = (NativeI32)lane_numbers(first);
    NativeI32 segments{};
    if (b.query_segments) __builtin_memcpy(&segments, b.query_segments + first, sizeof segments);
    for (std::int64_t k = 0; k < b.keys; ++k) {
      // The distance p - s of lane 0; a query sees the key where its distance is from `least` to `most`.
      const std::int64_t apart = b.first_query - b.first_key - k, far = std::int64_t{1} << 30;
      const std::int64_t low = b.causal ? 0 : (b.window > 0 ? 1 - b.window : -far);
      const std::int64_t high = b.window > 0 ? b.window - 1 : far;
      const NativeI32 distance = lanes + static_cast<std::int32_t>(apart);
      float* const row = b.x + k * kPanel + first;
      NativeF32 x = load_native(row);
      if (b.slope != 0) {
        const NativeI32 absolute = distance < 0 ? -distance : distance;
        x = multiply_add(__builtin_convertvector(absolute, NativeF32), NativeF32{} - b.slope, x);
      }
      NativeI32 seen = (distance >= static_cast<std::int32_t>(low < -far ? -far : low)) &
                       (distance <= static_cast<std::int32_t>(high > far ? far : high));
      if (b.key_segments) seen &= segments == b.key_segments[k];
      store_native(row, seen ? x : NativeF32{} + kMinusInfinity);
    }
  });
}

void attention_softmax(const AttentionTable::Softmax& s) {
  for_registers([&s](int first) {
    const NativeF32 before = load_native(s.top + first);
    NativeF32 top = before;
    for (std::int64_t k = 0; k < s.keys; ++k) {
      const NativeF32 x = load_native(s.x + k * kPanel + first);
      top = x > top ? x : top;
    }
    const NativeF32 shift = top == kMinusInfinity ? NativeF32{} : top;
    const NativeF32 factor = exponential(before - shift);
    NativeF32 sum = load_native(s.sum + first) * factor;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < s.keys; ++k) {
      const NativeF32 p = exponential(load_native(s.x + k * kPanel + first) - shift);
      store_native(s.x + k * kPanel + first, p);
      sum = sum + p;
    }
    store_native(s.top + first, top);
    store_native(s.sum + first, sum);
    store_native(s.factor + first, factor);
  });
}

void attention_weights(std::int64_t keys, float* x, const float* log_sums) {
  for_registers([=](int first) {
    const NativeF32 given = load_native(log_sums + first);
    const NativeF32 shift = given == kMinusInfinity ? NativeF32{} : given;
#pragma GCC unroll 4
    for (std::int64_t k = 0; k < keys; ++k) {
      float* const row = x + k * kPanel + first;
      store_native(row, exponential(load_native(row) - shift));
    }
  });
}

// The random numbers of four elements that follow each other, for each lane of a register.
struct FourDraws {
  NativeU32 words[4];
};
LOCKSTEP_INLINE FourDraws draws_of(const AttentionTable::Drop& d, int first, std::int64_t k) {
  std::uint32_t low[kNative], high[kNative];
  for (int l = 0; l < kNative; ++l) {
    const std::uint64_t element =
        d.first + static_cast<std::uint64_t>(first + l) * d.stride + static_cast<std::uint64_t>(k);
    low[l] = static_cast<std::uint32_t>(element / 4);
    high[l] = static_cast<std::uint32_t>(element / 4 >> 32);
  }
  FourDraws draws;
  __builtin_memcpy(&draws.words[0], low, sizeof low);
  __builtin_memcpy(&draws.words[1], high, sizeof high);
  draws.words[2] = NativeU32{} + static_cast<std::uint32_t>(d.high);
  draws.words[3] = NativeU32{} + static_cast<std::uint32_t>(d.high >> 32);
  philox(d.key, draws.words);
  return draws;
}

void attention_drop(const AttentionTable::Drop& d) {
  const bool aligned = d.stride % 4 == 0;  // all lanes come to a new group of four in the same rows
  for_registers([&d, aligned](int first) {
    const NativeU32 begin =
        (lane_numbers(first) * static_cast<std::uint32_t>(d.stride) + static_cast<std::uint32_t>(d.first)) & 3;
    FourDraws draws{};
    for (std::int64_t k = 0; k < d.keys; ++k) {
      const NativeU32 word = (begin + static_cast<std::uint32_t>(k)) & 3;
      if (!aligned || k == 0 || word[0] == 0) draws = draws_of(d, first, k);
      NativeU32 number = draws.words[0];
      for (std::uint32_t w = 1; w < 4; ++w) number = word == w ? draws.words[w] : number;
      const auto keeps = (number >> 8) >= d.threshold;
      const auto with_dropout = [&d, keeps](NativeF32 x) { return keeps ? x * d.kept : NativeF32{}; };
      const std::int64_t at = k * kPanel + first;
      store_native(d.y + at, with_dropout(load_native(d.x + at)));
      if (d.other) store_native(d.other + at, with_dropout(load_native(d.other + at)));
    }
  });
}

void attention_slopes(std::int64_t keys, const float* p, const float* delta, float* x) {
  for_registers([=](int first) {
    const NativeF32 shift = load_native(delta + first);
#pragma GCC unroll 4
    for (std::int64_t at = first; at < keys * kPanel; at += kPanel)
      store_native(x + at, load_native(p + at) * (load_native(x + at) - shift));
  });
}

void attention_multiply(std::int64_t rows, const float* factors, float* x) {
  for_registers([=](int first) {
    const NativeF32 factor = load_native(factors + first);
#pragma GCC unroll 4
    for (std::int64_t at = first; at < rows * kPanel; at += kPanel) store_native(x + at, load_native(x + at) * factor);
  });
}

void attention_dots(std::int64_t rows, const float* a, const float* b, float* y) {
  for_registers([=](int first) {
    NativeF32 sum{};
    for (std::int64_t at = first; at < rows * kPanel; at += kPanel)
      sum = multiply_add(load_native(a + at), load_native(b + at), sum);
    store_native(y + first, sum);
  });
}

constexpr AttentionTable kAttentionTable{.bias = attention_bias,
                                         .softmax = attention_softmax,
                                         .weights = attention_weights,
                                         .drop = attention_drop,
                                         .slopes = attention_slopes,
                                         .multiply = attention_multiply,
                                         .dots = attention_dots};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
