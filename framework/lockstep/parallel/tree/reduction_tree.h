// The one order of summation: a fixed binary tree over shards; a job without --shards has one shard per rank. Node
// (level, index) covers those of the shards [index << level, (index + 1) << level) that exist; its sum is left + right,
// or left alone where there is no right child. A rank that holds a contiguous range of shards adds up the nodes that
// are complete within the range and passes on the rest as open partial sums. So the distribution of shards over ranks
// changes no bit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/parallel/tree/wire.h"

namespace lockstep::parallel {

struct TreeNode {
  int level = 0;
  std::int64_t index = 0;
  bool operator==(const TreeNode&) const = default;
};

class ReductionTree {
 public:
  explicit ReductionTree(std::int64_t shards);
  std::int64_t shards() const { return shards_; }
  TreeNode root() const { return {root_level_, 0}; }

  // Pushes a node on a stack of open partial sums, which are in shard order, and joins siblings at the top. Returns the
  // number of joins; in each, the top entry is added to the entry below it and removed.
  int push(std::vector<TreeNode>& stack, TreeNode node) const;
  // The open partial sums after all shards of a range; and the largest number of entries on the stack on the way, the
  // current shard included.
  std::vector<TreeNode> open_partials(Range shards) const;
  int slots_needed(Range shards) const;

 private:
  std::int64_t shards_;
  int root_level_ = 0;
};

// One addition of a sum over operands: operand[into] += operand[from].
struct TreeMerge {
  int into, from;
};

// The additions, in order, that join partial sums in shard order (gaps are allowed), and the operands that then hold
// the open sums, in shard order.
struct TreeFold {
  std::vector<TreeMerge> merges;
  std::vector<int> open;
  std::vector<TreeNode> nodes;  // of the open ones
};
TreeFold fold(const ReductionTree& tree, std::span<const TreeNode> partials);
// The additions that join partials of all shards; the root ends in operand 0. Throws Error where they do not cover all
// shards.
std::vector<TreeMerge> merges_to_root(const ReductionTree& tree, std::span<const TreeNode> partials);

struct TreeSumOptions {
  Wire wire = Wire::Exact;
  bool root = true;      // the result is the root, which is rounded too
  bool threads = false;  // may use OpenMP
};
// Writes the sum of the operands, made by these additions, to each of `outs`, in cache-sized blocks. An out may be one
// of the operands. Allocates nothing.
template <class T>
void tree_sum(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n,
              std::span<T* const> outs, const TreeSumOptions& options);

// target[i] += source[i], both rounded first.
template <class T>
void add_into(std::int64_t n, const T* source, T* target, Wire wire = Wire::Exact);

// Conversion to and from messages of a narrow wire, 2 bytes per element.
void narrow(std::int64_t n, const float* in, Wire wire, std::uint16_t* out);
void widen(std::int64_t n, const std::uint16_t* in, Wire wire, float* out);

}  // namespace lockstep::parallel
