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

  // Puts a node on a stack of open partial sums, in shard order, and joins siblings at its top: the number of times the
  // top entry is added to the one below it and dropped.
  int push(std::vector<TreeNode>& stack, TreeNode node) const;
  // What is open after all shards of a range, and the largest number of entries on the way, the current shard included.
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

// The additions, in order, that join partial sums given in shard order (gaps between them are fine), and which operands
// then hold what is still open, in shard order.
struct TreeFold {
  std::vector<TreeMerge> merges;
  std::vector<int> open;
  std::vector<TreeNode> nodes;  // of the open ones
};
TreeFold fold(const ReductionTree& tree, std::span<const TreeNode> partials);
// The same for partials that cover all shards: the root ends in operand 0.
std::vector<TreeMerge> merges_to_root(const ReductionTree& tree, std::span<const TreeNode> partials);

// To what a value is rounded on its way up an edge of the tree, and from the root to all: what a message can carry.
// Sums themselves are f32. Exact for f64.
enum class Wire : std::uint8_t { Exact, BF16, F16 };

struct TreeSumOptions {
  Wire wire = Wire::Exact;
  bool root = true;      // the sum is the root's, which is rounded too
  bool threads = false;  // may use OpenMP
};
// Each of `outs`[i] = the operands' sum by those additions, in cache-sized blocks; an out may be one of the operands.
// No other memory.
template <class T>
void tree_sum(std::span<const T* const> operands, std::span<const TreeMerge> merges, std::int64_t n,
              std::span<T* const> outs, const TreeSumOptions& options);

// target[i] += source[i], both rounded first.
template <class T>
void add_into(std::int64_t n, const T* source, T* target, Wire wire = Wire::Exact);

// Messages of a narrow wire: 2 bytes an element.
void narrow(std::int64_t n, const float* in, Wire wire, std::uint16_t* out);
void widen(std::int64_t n, const std::uint16_t* in, Wire wire, float* out);

}  // namespace lockstep::parallel
