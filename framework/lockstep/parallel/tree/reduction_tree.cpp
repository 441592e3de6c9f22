#include "lockstep/parallel/tree/reduction_tree.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::parallel {
ReductionTree::ReductionTree(std::int64_t shards) : shards_(shards) {
  check(shards >= 1 && shards <= (std::int64_t{1} << 40), "reduction tree", "{} shards, expected 1 to 2^40", shards);
  while ((std::int64_t{1} << root_level_) < shards) ++root_level_;
}

int ReductionTree::push(std::vector<TreeNode>& stack, TreeNode node) const {
  int merges = 0;
  stack.push_back(node);
  for (;;) {
    TreeNode& top = stack.back();
    const bool left = top.index % 2 == 0;
    if (left && top.level < root_level_ && ((top.index + 1) << top.level) >= shards_) {
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

std::vector<TreeNode> ReductionTree::open_partials(Range shards) const {
  std::vector<TreeNode> stack;
  for (std::int64_t shard = shards.begin; shard < shards.end; ++shard) push(stack, {0, shard});
  return stack;
}

int ReductionTree::slots_needed(Range shards) const {
  std::vector<TreeNode> stack;
  std::size_t deepest = 1;
  for (std::int64_t shard = shards.begin; shard < shards.end; ++shard) {
    deepest = std::max(deepest, stack.size() + 1);
    push(stack, {0, shard});
  }
  return static_cast<int>(deepest);
}

TreeFold fold(const ReductionTree& tree, std::span<const TreeNode> partials) {
  TreeFold result;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    result.open.push_back(static_cast<int>(i));
    for (int joins = tree.push(result.nodes, partials[i]); joins > 0; --joins) {
      result.merges.push_back({result.open[result.open.size() - 2], result.open.back()});
      result.open.pop_back();
    }
  }
  return result;
}

std::vector<TreeMerge> merges_to_root(const ReductionTree& tree, std::span<const TreeNode> partials) {
  TreeFold all = fold(tree, partials);
  check(all.nodes.size() == 1 && all.nodes[0] == tree.root(), "reduction tree",
        "the partial sums do not cover all {} shards", tree.shards());
  return std::move(all.merges);
}

}  // namespace lockstep::parallel
