#include "lockstep/plan/value_uses.h"

#include <algorithm>

namespace lockstep::plan {

ValueUses::ValueUses(const Graph& graph, const Traced& traced, const std::vector<ParameterGradient>& gradients)
    : live_(graph.nodes().size(), false) {
  for (const Node& node : graph.nodes()) uses_.emplace_back(node.outputs.size());
  const auto live = [&](Value v) { live_[static_cast<std::size_t>(v.node())] = true; };
  const auto keep = [&](Value v) {
    if (!v) return;
    uses_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())].kept = true;
    live(v);
  };
  for_each_value(traced, keep);
  for (const auto& [name, v] : graph.observed()) keep(v);
  for (const ParameterGradient& g : gradients) keep(g.value);
  // These are not kept: a pass may replace them by the output of another node.
  for (const RunningStatistics& s : graph.statistics()) live(s.sums);
  for (std::size_t i = live_.size(); i-- > 0;) {
    if (!live_[i]) continue;
    for (const Value v : graph.nodes()[i].inputs) {
      live(v);
      uses_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())].readers.push_back(
          static_cast<int>(i));
    }
  }
}

bool ValueUses::read_by(Value v, int node) const {
  return !kept(v) && std::ranges::all_of(readers(v), [=](int reader) { return reader == node; });
}

}  // namespace lockstep::plan
