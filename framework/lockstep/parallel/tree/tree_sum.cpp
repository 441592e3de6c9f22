// The sums of the reduction tree, exact or rounded to a wire at every edge.
#include <bit>
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/float16.h"
#include "lockstep/parallel/tree/reduction_tree.h"
#include "lockstep/parallel/tree/tree_blocks.h"

namespace lockstep::parallel {
namespace {

// Equals static_cast<float>(Float16(value)). It computes all cases and selects one, so that loops are vectorised.
// Comparisons are of signed numbers, for which there are vector instructions; additions are not, as they would overflow
// for some NaNs.
float rounded_to_f16(float value) {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t bits = word & 0x7fffffffU;
  const auto magnitude = static_cast<std::int32_t>(bits);
  const auto normal = static_cast<std::int32_t>((bits + 0xfffU + ((bits >> 13) & 1U)) & ~0x1fffU);
  const auto subnormal = std::bit_cast<std::int32_t>((std::bit_cast<float>(magnitude) + 0.5F) - 0.5F);
  std::int32_t result = magnitude < 0x38800000 ? subnormal : normal;
  result = magnitude >= 0x477ff000 ? 0x7f800000 : result;
  result = magnitude > 0x7f800000 ? 0x7fc00000 : result;
  return std::bit_cast<float>((word & 0x80000000U) | static_cast<std::uint32_t>(result));
}

template <Wire wire, class T>
T rounded(T value) {
  if constexpr (wire == Wire::BF16 && std::is_same_v<T, float>) {
    return static_cast<float>(BFloat16(value));
  } else if constexpr (wire == Wire::F16 && std::is_same_v<T, float>) {
    return rounded_to_f16(value);
  } else {
    return value;
  }
}

template <Wire wire>
struct Sum {
  static constexpr bool kRoundsRoot = wire != Wire::Exact;
  template <class T>
  static T join(T a, T b) {
    return rounded<wire>(a) + rounded<wire>(b);
  }
  template <class T>
  static T root(T sum) {
    return rounded<wire>(sum);
  }
};

// Calls body with the wire as a compile-time constant; f64 has one wire.
template <class T, class Body>
void with_wire(Wire wire, const Body& body) {
  if (std::is_same_v<T, double> || wire == Wire::Exact) {
    body.template operator()<Wire::Exact>();
  } else if (wire == Wire::BF16) {
    body.template operator()<Wire::BF16>();
  } else {
    body.template operator()<Wire::F16>();
  }
}

}  // namespace

template <class T>
void tree_sum(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n,
              std::span<T* const> outs, const TreeSumOptions& options) {
  with_wire<T>(options.wire, [&]<Wire wire>() {
    tree_blocks::reduce<Sum<wire>, T>(operands, merges, n, outs, options.root, options.threads);
  });
}

template <class T>
void add_into(std::int64_t n, const T* source, T* target, Wire wire) {
  with_wire<T>(wire, [&]<Wire w>() {
#pragma omp parallel for simd schedule(static) if (n > tree_blocks::kParallel)
    for (std::int64_t i = 0; i < n; ++i) target[i] = rounded<w>(target[i]) + rounded<w>(source[i]);
  });
}

void narrow(std::int64_t n, const float* in, Wire wire, std::uint16_t* out) {
  if (wire == Wire::F16) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = Float16(in[i]).bits;
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = BFloat16(in[i]).bits;
  }
}

void widen(std::int64_t n, const std::uint16_t* in, Wire wire, float* out) {
  if (wire == Wire::F16) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(std::bit_cast<Float16>(in[i]));
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(std::bit_cast<BFloat16>(in[i]));
  }
}

template void tree_sum<float>(std::span<const float* const>, std::span<const TreeMerge>, std::int64_t,
                              std::span<float* const>, const TreeSumOptions&);
template void tree_sum<double>(std::span<const double* const>, std::span<const TreeMerge>, std::int64_t,
                               std::span<double* const>, const TreeSumOptions&);
template void add_into<float>(std::int64_t, const float*, float*, Wire);
template void add_into<double>(std::int64_t, const double*, double*, Wire);

}  // namespace lockstep::parallel
