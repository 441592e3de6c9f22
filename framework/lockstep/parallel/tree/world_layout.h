// Who holds which leaves of the reduction tree: rank r of P takes part r of the S shards, or leaf r where there are no
// shards.
#pragma once

#include <vector>

#include "lockstep/parallel/tree/reduction_tree.h"

namespace lockstep::parallel {

struct WorldLayout {
  ReductionTree tree;
  int rank, size;

  WorldLayout(int world_rank, int world_size, std::int64_t shards)
      : tree(shards > 0 ? shards : world_size), rank(world_rank), size(world_size) {}

  Range leaves_of(int r) const { return part_of(tree.leaves(), size, r); }
  Range my_leaves() const { return leaves_of(rank); }
  int my_slots() const { return tree.slots_needed(my_leaves()); }
  // All ranks' open partial sums, by rank; those of one rank in the order of its slots.
  std::vector<std::vector<TreeNode>> partials() const {
    std::vector<std::vector<TreeNode>> all;
    for (int r = 0; r < size; ++r) all.push_back(tree.open_partials(leaves_of(r)));
    return all;
  }
  // The additions that turn all of them, in that order, into the root.
  std::vector<TreeMerge> merges() const {
    std::vector<TreeNode> all;
    for (const auto& of_rank : partials()) all.insert(all.end(), of_rank.begin(), of_rank.end());
    return merges_to_root(tree, all);
  }
};

// A walk over this rank's leaves with the stack of open partial sums: where the current leaf's sum goes, and what is
// joined after it.
class LeafWalk {
 public:
  explicit LeafWalk(const WorldLayout& world) : tree_(world.tree), leaves_(world.my_leaves()) { begin(); }

  void begin() {
    stack_.clear();
    leaf_ = leaves_.begin;
    look_ahead();
  }
  void next() {
    stack_ = after_;
    ++leaf_;
    look_ahead();
  }
  bool done() const { return leaf_ >= leaves_.end; }
  bool last() const { return leaf_ + 1 == leaves_.end; }
  std::int64_t leaf() const { return leaf_; }
  int slot() const { return static_cast<int>(stack_.size()); }
  // After the leaf's sum is complete in slot(): calls add(slot, the one below) for each addition that then is due.
  template <class Add>
  void join(const Add& add) const {
    for (int m = 0, top = slot(); m < merges_; ++m, --top) add(top, top - 1);
  }

 private:
  void look_ahead() {
    after_ = stack_;
    merges_ = done() ? 0 : tree_.push(after_, {0, leaf_});
  }
  ReductionTree tree_;
  Range leaves_;
  std::int64_t leaf_ = 0;
  int merges_ = 0;
  std::vector<TreeNode> stack_, after_;
};

}  // namespace lockstep::parallel
