#include "lockstep/train/guard/known_product.h"

#include <xxhash.h>

#include <vector>

#include "lockstep/core/fault_point.h"
#include "lockstep/core/random.h"
#include "lockstep/kernels/generic/gemm.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kSide = 192, kRounds = 8;

// Integers in [-64, 63]: a row times a column is below 2^20 and exact in f32.
std::vector<float> operand(std::uint64_t which) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < kSide * kSide / 4; ++i) {
    for (std::uint32_t word : philox(0x10c4, i, which)) values.push_back(static_cast<float>(word % 128) - 64);
  }
  return values;
}

std::vector<float> by_integers(const std::vector<float>& a, const std::vector<float>& b) {
  std::vector<float> product(kSide * kSide);
  for (std::int64_t i = 0; i < kSide; ++i) {
    std::vector<std::int32_t> row(kSide);
    for (std::int64_t k = 0; k < kSide; ++k) {
      const auto factor = static_cast<std::int32_t>(a[static_cast<std::size_t>(i * kSide + k)]);
      for (std::int64_t j = 0; j < kSide; ++j) {
        row[static_cast<std::size_t>(j)] +=
            factor * static_cast<std::int32_t>(b[static_cast<std::size_t>(k * kSide + j)]);
      }
    }
    for (std::int64_t j = 0; j < kSide; ++j)
      product[static_cast<std::size_t>(i * kSide + j)] = static_cast<float>(row[static_cast<std::size_t>(j)]);
  }
  return product;
}

std::uint64_t hash(const std::vector<float>& values, std::uint64_t seed) {
  return XXH3_64bits_withSeed(values.data(), values.size() * sizeof(float), seed);
}

}  // namespace

KnownProduct known_product() {
  KnownProduct result;
  std::vector<float> product(kSide * kSide);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::vector<float> a = operand(2 * round), b = operand(2 * round + 1);
    kernels::generic::gemm<float>(false, false, kSide, kSide, kSide, 1, a.data(), kSide, b.data(), kSide, 0,
                                  product.data(), kSide);
    if (fault_wanted("product.wrong", static_cast<std::int64_t>(round))) product[kSide] += 1;
    result.computed = hash(product, result.computed);
    result.expected = hash(by_integers(a, b), result.expected);
  }
  return result;
}

}  // namespace lockstep::train
