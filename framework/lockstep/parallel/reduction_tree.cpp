#include "lockstep/parallel/reduction_tree.h"

#include <algorithm>
#include <array>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t kParallel = 65536;  // elements from which on threads pay; who adds which changes no bit

}  // namespace

ReductionTree::ReductionTree(std::int64_t leaves) : leaves_(leaves) {
  check(leaves >= 1 && leaves <= (std::int64_t{1} << 40), "reduction tree", "{} leaves, expected at least 1", leaves);
  while ((std::int64_t{1} << root_level_) < leaves) ++root_level_;
}

int ReductionTree::push(std::vector<TreeNode>& stack, TreeNode node) const {
  int merges = 0;
  stack.push_back(node);
  for (;;) {
    TreeNode& top = stack.back();
    const bool left = top.index % 2 == 0;
    if (left && top.level < root_level_ && ((top.index + 1) << top.level) >= leaves_) {
      top = {top.level + 1, top.index / 2};  // no right sibling exists: the parent is the same sum
    } else if (!left && stack.size() >= 2 && stack[stack.size() - 2] == TreeNode{top.level, top.index - 1}) {
      const TreeNode parent{top.level + 1, top.index / 2};
      stack.pop_back();
      stack.back() = parent;
      ++merges;
    } else {
      return merges;
    }
  }
}

std::vector<TreeNode> ReductionTree::open_partials(Range leaves) const {
  std::vector<TreeNode> stack;
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) push(stack, {0, leaf});
  return stack;
}

int ReductionTree::slots_needed(Range leaves) const {
  std::vector<TreeNode> stack;
  std::size_t deepest = 1;
  for (std::int64_t leaf = leaves.begin; leaf < leaves.end; ++leaf) {
    deepest = std::max(deepest, stack.size() + 1);
    push(stack, {0, leaf});
  }
  return static_cast<int>(deepest);
}

std::vector<TreeMerge> merges_to_root(const ReductionTree& tree, std::span<const TreeNode> partials) {
  std::vector<TreeMerge> merges;
  std::vector<TreeNode> stack;
  std::vector<int> operands;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    operands.push_back(static_cast<int>(i));
    for (int joins = tree.push(stack, partials[i]); joins > 0; --joins) {
      merges.push_back({operands[operands.size() - 2], operands.back()});
      operands.pop_back();
    }
  }
  check(stack.size() == 1 && stack[0] == tree.root(), "reduction tree", "partial sums do not cover {} leaves",
        tree.leaves());
  return merges;
}

template <class T>
void tree_sum(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n, T* out) {
  constexpr std::int64_t kBlock = 512;  // a block of every open sum stays in the first-level cache
  if (merges.empty()) {
    if (operands[0] != out) std::copy_n(operands[0], n, out);
    return;
  }
  constexpr int kMaxDepth = 48;
#pragma omp parallel for schedule(static) if (n > kParallel)
  for (std::int64_t begin = 0; begin < n; begin += kBlock) {
    std::array<std::array<T, kBlock>, kMaxDepth> sums;  // by depth on the walk's stack
    std::array<int, kMaxDepth> owners;                  // which operand each one is
    const std::int64_t count = std::min(kBlock, n - begin);
    int depth = 0;
    for (const TreeMerge& m : merges) {
      const auto is_sum = [&](int operand, int at) {
        return at >= 0 && owners[static_cast<std::size_t>(at)] == operand;
      };
      const T* from = operands[static_cast<std::size_t>(m.from)] + begin;
      if (is_sum(m.from, depth - 1)) from = sums[static_cast<std::size_t>(--depth)].data();
      if (!is_sum(m.into, depth - 1)) {
        const T* left = operands[static_cast<std::size_t>(m.into)] + begin;
        auto& fresh = sums[static_cast<std::size_t>(depth)];
        // `from` may lie in this very block: element-wise it is read before it is written.
        for (std::int64_t i = 0; i < count; ++i) fresh[static_cast<std::size_t>(i)] = left[i] + from[i];
        owners[static_cast<std::size_t>(depth++)] = m.into;
      } else {
        auto& sum = sums[static_cast<std::size_t>(depth - 1)];
        for (std::int64_t i = 0; i < count; ++i) sum[static_cast<std::size_t>(i)] += from[i];
      }
    }
    std::copy_n(sums[0].data(), count, out + begin);
  }
}

template <class T>
void add_into(std::int64_t n, const T* source, T* target) {
#pragma omp parallel for simd schedule(static) if (n > kParallel)
  for (std::int64_t i = 0; i < n; ++i) target[i] += source[i];
}

template void tree_sum<float>(std::span<const float* const>, std::span<const TreeMerge>, std::int64_t, float*);
template void tree_sum<double>(std::span<const double* const>, std::span<const TreeMerge>, std::int64_t, double*);
template void add_into<float>(std::int64_t, const float*, float*);
template void add_into<double>(std::int64_t, const double*, double*);

}  // namespace lockstep
