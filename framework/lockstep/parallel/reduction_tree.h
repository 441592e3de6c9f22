// The one order of summation: a fixed binary tree over leaves (shards, else ranks). Node (level, index) covers the
// leaves [index << level, (index + 1) << level) that exist; its sum is left + right, or left alone where there is no
// right. Any rank that holds a contiguous range of leaves adds up what is complete within it and passes on the rest as
// open partial sums, so who holds which leaf changes no bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/partition.h"

namespace lockstep {

struct TreeNode {
  int level = 0;
  std::int64_t index = 0;
  bool operator==(const TreeNode&) const = default;
};

class ReductionTree {
 public:
  explicit ReductionTree(std::int64_t leaves);
  std::int64_t leaves() const { return leaves_; }
  TreeNode root() const { return {root_level_, 0}; }

  // Puts a node on a stack of open partial sums, in leaf order, and joins siblings at its top: the number of times the
  // top entry is added to the one below it and dropped.
  int push(std::vector<TreeNode>& stack, TreeNode node) const;
  // What is open after all leaves of a range, and the largest number of entries on the way, the current leaf included.
  std::vector<TreeNode> open_partials(Range leaves) const;
  int slots_needed(Range leaves) const;

 private:
  std::int64_t leaves_;
  int root_level_ = 0;
};

// One addition of a sum over operands: operand[into] += operand[from].
struct TreeMerge {
  int into, from;
};

// The additions, in order, that turn the ranks' open partials (in leaf order) into the root, which ends in operand 0.
std::vector<TreeMerge> merges_to_root(const ReductionTree& tree, std::span<const TreeNode> partials);

// out[i] = the operands' sum by those additions, in cache-sized blocks; `out` may be one of the operands. No other
// memory.
template <class T>
void tree_sum(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n, T* out);

// target[i] += source[i]
template <class T>
void add_into(std::int64_t n, const T* source, T* target);

}  // namespace lockstep
