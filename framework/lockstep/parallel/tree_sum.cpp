// The arithmetic of the reduction tree: sums in blocks that stay in the first-level cache, so that each operand is read
// once and each result written once.
#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/core/float16.h"
#include "lockstep/parallel/reduction_tree.h"

namespace lockstep {
namespace {

constexpr std::int64_t kParallel = 65536;  // elements from which on threads pay; who adds which changes no bit
constexpr std::int64_t kBlock = 512;       // every open sum of a block stays in the first-level cache
constexpr int kMaxDepth = 48;              // of open sums: 2^48 leaves

template <Wire wire, class T>
T rounded(T value) {
  if constexpr (wire == Wire::BF16 && std::is_same_v<T, float>) {
    return static_cast<float>(BFloat16(value));
  } else if constexpr (wire == Wire::F16 && std::is_same_v<T, float>) {
    return static_cast<float>(Float16(value));
  } else {
    return value;
  }
}

// out[i] = a[i] + b[i]; any two of them may be the same.
template <Wire wire, class T>
void add(std::int64_t n, const T* a, const T* b, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = rounded<wire>(a[i]) + rounded<wire>(b[i]);
}

// One block: walks the additions with a stack of open sums; the last addition goes where the result is wanted.
template <Wire wire, class T>
void sum_block(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t begin,
               std::int64_t count, std::span<T* const> outs, bool root) {
  std::array<std::array<T, kBlock>, kMaxDepth> sums;
  std::array<int, kMaxDepth> owners;  // by depth: which operand the sum stands for
  int depth = 0;
  const T* result = operands[0] + begin;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const auto top_or_operand = [&](int operand) -> const T* {
      if (depth > 0 && owners[static_cast<std::size_t>(depth - 1)] == operand)
        return sums[static_cast<std::size_t>(--depth)].data();
      return operands[static_cast<std::size_t>(operand)] + begin;
    };
    const T* right = top_or_operand(merges[i].from);
    const T* left = top_or_operand(merges[i].into);
    owners[static_cast<std::size_t>(depth)] = merges[i].into;
    T* sum = i + 1 < merges.size() ? sums[static_cast<std::size_t>(depth)].data() : outs[0] + begin;
    ++depth;
    add<wire>(count, left, right, sum);
    result = sum;
  }
  if (root && wire != Wire::Exact) {
    T* first = outs[0] + begin;
    for (std::int64_t i = 0; i < count; ++i) first[i] = rounded<wire>(result[i]);
    result = first;
  }
  for (T* out : outs) {
    if (out + begin != result) std::copy_n(result, count, out + begin);
  }
}

template <Wire wire, class T>
void sum_all(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n,
             std::span<T* const> outs, const TreeSumOptions& options) {
#pragma omp parallel for schedule(static) if (options.threads && n > kParallel)
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    sum_block<wire>(operands, merges, begin, std::min(kBlock, n - begin), outs, options.root);
  }
}

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
  with_wire<T>(options.wire, [&]<Wire wire>() { sum_all<wire>(operands, merges, n, outs, options); });
}

template <class T>
void add_into(std::int64_t n, const T* source, T* target, Wire wire) {
  with_wire<T>(wire, [&]<Wire w>() {
#pragma omp parallel for simd schedule(static) if (n > kParallel)
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

}  // namespace lockstep
