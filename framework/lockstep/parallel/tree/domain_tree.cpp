#include "lockstep/parallel/tree/domain_tree.h"

#include <algorithm>

namespace lockstep::parallel {
namespace {

// The additions that make the open sum `open`, over the operands that contribute to it.
DomainTree::Sum sum_of(int open, std::span<const TreeMerge> merges) {
  DomainTree::Sum sum{.operands = {open}, .merges = {}};
  const auto position = [&](int operand) { return std::ranges::find(sum.operands, operand); };
  for (auto m = merges.rbegin(); m != merges.rend();
       ++m) {  // backwards: an operand that is added to a contributing operand contributes too
    if (position(m->into) != sum.operands.end()) sum.operands.push_back(m->from);
  }
  std::ranges::sort(sum.operands);
  for (const TreeMerge& m : merges) {
    if (const auto into = position(m.into); into != sum.operands.end()) {
      sum.merges.push_back(
          {static_cast<int>(into - sum.operands.begin()), static_cast<int>(position(m.from) - sum.operands.begin())});
    }
  }
  return sum;
}

}  // namespace

DomainTree::DomainTree(const WorldLayout& world, const Domains& domains) {
  struct Placed {
    std::int64_t first_shard;
    TreeNode node;
    Open open;
  };
  std::vector<Placed> placed;
  const auto partials = world.partials();
  for (int d = 0; d < domains.count(); ++d) {
    std::vector<TreeNode> nodes;
    for (std::size_t local = 0; local < domains.of(d).size(); ++local) {
      const auto& of_rank = partials[static_cast<std::size_t>(domains.of(d)[local])];
      nodes.insert(nodes.end(), of_rank.begin(), of_rank.end());
      for (std::size_t slot = 0; d == domains.mine() && slot < of_rank.size(); ++slot)
        operands.push_back({static_cast<int>(local), static_cast<int>(slot)});
    }
    const TreeFold folded = fold(world.tree, nodes);
    open_sums.push_back(static_cast<int>(folded.open.size()));
    for (std::size_t i = 0; i < folded.open.size(); ++i) {
      const TreeNode node = folded.nodes[i];
      placed.push_back({node.index << node.level, node, {d, static_cast<int>(i)}});
      if (d == domains.mine()) sums.push_back(sum_of(folded.open[i], folded.merges));
    }
  }
  std::ranges::sort(placed, {}, &Placed::first_shard);
  std::vector<TreeNode> nodes;
  for (const Placed& p : placed) {
    nodes.push_back(p.node);
    order.push_back(p.open);
  }
  to_root = merges_to_root(world.tree, nodes);
}

}  // namespace lockstep::parallel
