#include "lockstep/plan/last_layers.h"

#include <algorithm>
#include <set>

#include "lockstep/core/error.h"

namespace lockstep::plan {
namespace {

// "layer1.0.conv1" of "layer1.0.conv1.weight"; empty for a parameter of the model itself.
std::string layer_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return dot == std::string::npos ? "" : parameter.substr(0, dot);
}

using Layers = std::set<std::string>;

class Search {
 public:
  Search(const std::vector<NamedParameter>& parameters, const Graph& graph) : graph_(graph), of_(graph.nodes().size()) {
    for (const NamedParameter& p : parameters) names_.emplace(p.parameter, layer_of(p.name));
  }

  Layers run(Value root) {
    const std::vector<bool> live = live_nodes(root);
    for (std::size_t i = 0; i < of_.size(); ++i) {
      if (live[i]) visit(graph_.nodes()[i], of_[i]);
    }
    Layers last;
    for (const std::string& layer : of_[static_cast<std::size_t>(root.node())].layers) {
      if (!followed_.contains(layer)) last.insert(layer);
    }
    return last;
  }

 private:
  // The layers on which the outputs of a node depend, and whether they depend on samples too.
  struct Origin {
    Layers layers;
    bool samples = false;
  };

  std::vector<bool> live_nodes(Value root) const {
    std::vector<bool> live(graph_.nodes().size(), false);
    live[static_cast<std::size_t>(root.node())] = true;
    for (std::size_t i = live.size(); i-- > 0;) {
      if (!live[i]) continue;
      for (const Value v : graph_.nodes()[i].inputs) live[static_cast<std::size_t>(v.node())] = true;
    }
    return live;
  }

  void visit(const Node& node, Origin& to) {
    if (node.kind == Node::Kind::Input) to.samples = true;
    if (node.kind == Node::Kind::Parameter && node.parameter->role != Role::Buffer) {
      if (const auto found = names_.find(node.parameter); found != names_.end()) to.layers.insert(found->second);
    }
    Layers applied, before;  // layers whose parameters the node reads; layers on which its other inputs depend
    for (const Value v : node.inputs) {
      const Origin& from = of_[static_cast<std::size_t>(v.node())];
      (from.samples ? before : applied).insert(from.layers.begin(), from.layers.end());
      to.samples = to.samples || from.samples;
    }
    if (!applied.empty()) {
      for (const std::string& layer : before) {
        if (!applied.contains(layer)) followed_.insert(layer);
      }
    }
    to.layers.merge(applied);
    to.layers.merge(before);
  }

  const Graph& graph_;
  std::vector<Origin> of_;                         // by node
  std::map<const Parameter*, std::string> names_;  // of layers; of tied parameters, the first one
  Layers followed_;
};

}  // namespace

std::vector<std::string> last_layers(const std::vector<NamedParameter>& parameters, Value root) {
  const Layers last = Search(parameters, root.graph()).run(root);
  std::vector<std::string> names;
  for (const NamedParameter& p : parameters) {
    if (last.contains(layer_of(p.name))) names.push_back(p.name);
  }
  return names;
}

std::vector<std::string> last_layers(const std::vector<NamedParameter>& parameters, const ModelFunction& function,
                                     const std::map<std::string, Type>& inputs) {
  Graph graph(Mode::Eval, DType::F32);
  Traced traced = function(Inputs(graph, inputs));
  combine_losses(graph, 1, traced);
  const Value root = traced.prediction ? traced.prediction : traced.loss.mean;
  check(static_cast<bool>(root), "model", "the model function returned neither a prediction nor a loss");
  return last_layers(parameters, root);
}

}  // namespace lockstep::plan
