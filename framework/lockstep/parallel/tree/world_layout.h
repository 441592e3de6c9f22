// The distribution of shards over ranks: rank r of P holds part r of the S shards. Without --shards there are P shards,
// one per rank.
#pragma once

#include <vector>

#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep::parallel {

struct WorldLayout {
  ReductionTree tree;
  int rank, size;

  WorldLayout(int world_rank, int world_size, std::int64_t shards)
      : tree(shards > 0 ? shards : world_size), rank(world_rank), size(world_size) {}

  Range shards_of(int r) const { return part_of(tree.shards(), size, r); }
  Range my_shards() const { return shards_of(rank); }
  int my_slots() const { return tree.slots_needed(my_shards()); }
  // All ranks' open partial sums, by rank; those of one rank in the order of its slots.
  std::vector<std::vector<TreeNode>> partials() const {
    std::vector<std::vector<TreeNode>> all;
    for (int r = 0; r < size; ++r) all.push_back(tree.open_partials(shards_of(r)));
    return all;
  }
  // The additions that join all open partial sums, in this order, to the root.
  std::vector<TreeMerge> merges() const {
    std::vector<TreeNode> all;
    for (const auto& of_rank : partials()) all.insert(all.end(), of_rank.begin(), of_rank.end());
    return merges_to_root(tree, all);
  }
};

// A walk over this rank's shards with the stack of open partial sums: it gives the slot of the current shard's sum, and
// the joins after it.
class ShardWalk {
 public:
  explicit ShardWalk(const WorldLayout& world) : tree_(world.tree), shards_(world.my_shards()) { begin(); }

  void begin() {
    stack_.clear();
    shard_ = shards_.begin;
    look_ahead();
  }
  void next() {
    stack_ = after_;
    ++shard_;
    look_ahead();
  }
  bool done() const { return shard_ >= shards_.end; }
  bool last() const { return shard_ + 1 == shards_.end; }
  std::int64_t shard() const { return shard_; }
  int slot() const { return static_cast<int>(stack_.size()); }
  // After the shard's sum is complete in slot(): calls add(from, into) for each join that is then due; `into` is the
  // slot below `from`.
  template <class Add>
  void join(const Add& add) const {
    for (int m = 0, top = slot(); m < merges_; ++m, --top) add(top, top - 1);
  }

 private:
  void look_ahead() {
    after_ = stack_;
    merges_ = done() ? 0 : tree_.push(after_, {0, shard_});
  }
  ReductionTree tree_;
  Range shards_;
  std::int64_t shard_ = 0;
  int merges_ = 0;
  std::vector<TreeNode> stack_, after_;
};

}  // namespace lockstep::parallel
