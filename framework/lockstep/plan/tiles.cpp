#include "lockstep/plan/tiles.h"

#include <cstring>

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::plan {
namespace {

using Word4 [[gnu::vector_size(16)]] = std::uint32_t;
using Half8 [[gnu::vector_size(16)]] = std::uint16_t;

}  // namespace

template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const T* source, T* result) {
  constexpr auto kWord = static_cast<std::int64_t>(4 / sizeof(T));
  const auto load = [&](std::int64_t at) {
    Word4 v;
    std::memcpy(&v, source + at * kWord, sizeof v);
    return v;
  };
  const auto store = [&](std::int64_t at, Word4 v) { std::memcpy(result + at * kWord, &v, sizeof v); };
  for (std::int64_t c = 0; c < columns; c += 4) {
    for (std::int64_t r = 0; r < rows; r += 4) {
      const std::int64_t s = r * columns + c, t = c * rows + r;
      const Word4 a = load(s), b = load(s + columns), d = load(s + 2 * columns), e = load(s + 3 * columns);
      const Word4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                  ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Word4 de_low = __builtin_shufflevector(d, e, 0, 4, 1, 5),
                  de_high = __builtin_shufflevector(d, e, 2, 6, 3, 7);
      store(t, __builtin_shufflevector(ab_low, de_low, 0, 1, 4, 5));
      store(t + rows, __builtin_shufflevector(ab_low, de_low, 2, 3, 6, 7));
      store(t + 2 * rows, __builtin_shufflevector(ab_high, de_high, 0, 1, 4, 5));
      store(t + 3 * rows, __builtin_shufflevector(ab_high, de_high, 2, 3, 6, 7));
    }
  }
}

template void transpose<float>(std::int64_t, std::int64_t, const float*, float*);
template void transpose<std::uint16_t>(std::int64_t, std::int64_t, const std::uint16_t*, std::uint16_t*);

void interleave_rows(std::int64_t rows, std::int64_t columns, const std::uint16_t* source, std::uint16_t* result) {
  for (std::int64_t r = 0; r < rows; r += 2) {
    for (std::int64_t c = 0; c < columns; c += 8) {
      const std::uint16_t* s = source + r * columns + c;
      Half8 first, second;
      std::memcpy(&first, s, sizeof first);
      std::memcpy(&second, s + columns, sizeof second);
      const Half8 pairs[2] = {__builtin_shufflevector(first, second, 0, 8, 1, 9, 2, 10, 3, 11),
                              __builtin_shufflevector(first, second, 4, 12, 5, 13, 6, 14, 7, 15)};
      std::memcpy(result + r * columns + 2 * c, pairs, sizeof pairs);
    }
  }
}

void round_to_bf16(std::int64_t n, const float* source, std::uint16_t* result) {
  kernels::native_kernels().convert.to_bf16(n, source, result);
}

}  // namespace lockstep::plan
