// Does the additions of a reduction tree block by block; the open sums of a block stay in the first-level cache, so
// each operand is read once and each result is written once. Internal to parallel/: the including source defines the
// step.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep::parallel::tree_blocks {

inline constexpr std::int64_t kParallel =
    65536;  // elements from which threads pay; the division among threads changes no bit
inline constexpr std::int64_t kBlock = 512;  // every open sum of a block stays in the first-level cache
inline constexpr int kMaxDepth = 48;         // of the stack of open sums

// out[i] = a[i] and b[i] joined; any two of them may be the same.
template <class Step, class T>
void join(std::int64_t n, const T* a, const T* b, T* out) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = Step::join(a[i], b[i]);
}

// Reduces one block with a stack of open sums; the last addition writes the result to the first out.
template <class Step, class T>
void reduce_block(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t begin,
                  std::int64_t count, std::span<T* const> outs, bool root) {
  std::array<std::array<T, kBlock>, kMaxDepth> sums;
  std::array<int, kMaxDepth> owners;  // by depth: the operand for which the sum stands
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
    join<Step>(count, left, right, sum);
    result = sum;
  }
  if (root && Step::kRoundsRoot) {
    T* first = outs[0] + begin;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) first[i] = Step::root(result[i]);
    result = first;
  }
  for (T* out : outs) {
    if (out + begin != result) std::copy_n(result, count, out + begin);
  }
}

// Step gives T join(T, T), constexpr bool kRoundsRoot, and T root(T), which is applied to the root's sum.
template <class Step, class T>
void reduce(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n,
            std::span<T* const> outs, bool root, bool threads) {
#pragma omp parallel for schedule(static) if (threads && n > kParallel)
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    reduce_block<Step>(operands, merges, begin, std::min(kBlock, n - begin), outs, root);
  }
}

}  // namespace lockstep::parallel::tree_blocks
