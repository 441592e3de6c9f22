#include "lockstep/plan/fusion.h"

#include <algorithm>
#include <map>
#include <optional>

#include "lockstep/graph/copy.h"
#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/plan/node_op.h"
#include "lockstep/plan/value_uses.h"

namespace lockstep::plan {
namespace {

bool same_shapes(const Node& node) {
  return std::ranges::all_of(node.inputs, [&](Value v) { return v.type() == node.outputs[0]; });
}
bool is_relu(const Node& node) { return as_pointwise(node, "relu") != nullptr; }
bool is_add(const Node& node) { return as_pointwise(node, "add") != nullptr && same_shapes(node); }
bool is_gate(const Node& node) { return as_pointwise(node, "gate") != nullptr && same_shapes(node); }

// A pattern that ends at one node: the producer and the epilogue that the producer absorbs.
struct Match {
  Value root;           // the producer's result
  Value residual = {};  // added to it
  Epilogue epilogue = {};
};

// A batch norm's gradient that absorbs the gradient of a ReLU; it replaces the node of the latter.
struct GradientMatch {
  int gradient;  // the node of the norm's gradient, or of its sums
  Value y;       // the ReLU's result
  Value beta;
  Epilogue epilogue;
};

class Fusion {
 public:
  Fusion(const Graph& graph, const GraphRoots& roots, bool fold)
      : graph_(graph),
        roots_(roots),
        uses_(graph, roots.traced, roots.gradients),
        fold_(fold && !graph.training()),
        absorbed_(graph.nodes().size(), false),
        matches_(graph.nodes().size()),
        gradient_matches_(graph.nodes().size()) {
    find_epilogues();
    for (std::size_t i = static_cast<std::size_t>(roots.forward_nodes); i < graph.nodes().size(); ++i) {
      if (uses_.live(i) && is_gate(graph.nodes()[i])) match_gate(static_cast<int>(i));
    }
  }

  std::unique_ptr<Graph> run() {
    auto result = graph_.empty_copy();
    GraphCopy copy(graph_, *result);
    int forward_nodes = 0;
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (i == static_cast<std::size_t>(roots_.forward_nodes)) forward_nodes = static_cast<int>(result->nodes().size());
      if (absorbed_[i] || !uses_.live(i)) continue;
      if (matches_[i]) {
        emit(*matches_[i], static_cast<int>(i), *result, copy);
      } else if (gradient_matches_[i]) {
        emit_gradient(*gradient_matches_[i], static_cast<int>(i), *result, copy);
      } else if (const auto gate = gates_.find(static_cast<int>(i)); gate != gates_.end()) {
        emit_apply(static_cast<int>(i), gate->second, *result, copy);
      } else {
        copy.copy(static_cast<int>(i));
      }
    }
    const bool has_gradient = static_cast<std::size_t>(roots_.forward_nodes) < graph_.nodes().size();
    roots_.forward_nodes = has_gradient ? forward_nodes : static_cast<int>(result->nodes().size());
    copy.finish();
    for_each_value(roots_.traced, [&](Value& v) { v = copy(v); });
    for (ParameterGradient& g : roots_.gradients) g.value = copy(g.value);
    return result;
  }

 private:
  const Node& node(Value v) const { return graph_.node(v); }
  const Node& node(int i) const { return graph_.nodes()[static_cast<std::size_t>(i)]; }
  bool read_once(Value v) const { return uses_.read_once(v); }
  bool is_backward(int node) const { return node >= roots_.forward_nodes; }

  // Whether the forward part reads only the result of the node. Statistics that another op of the model reads would
  // have to exist before the end of the node.
  bool is_norm(Value v) const {
    for (std::size_t k = 1; k < node(v).outputs.size(); ++k) {
      const Value statistic = graph_.value(v.node(), static_cast<int>(k));
      const auto& readers = uses_.readers(statistic);
      if (uses_.kept(statistic) || !std::ranges::all_of(readers, [&](int i) { return is_backward(i); })) return false;
    }
    return v.index() == 0 && (as<BatchNorm2dOp>(node(v)) != nullptr || as<BatchNorm2dSyncOp>(node(v)) != nullptr ||
                              as<BatchNorm2dInferenceOp>(node(v)) != nullptr);
  }
  bool is_product(Value v) const { return as<ConvolutionOp>(node(v)) != nullptr || as<LinearOp>(node(v)) != nullptr; }
  // A batch norm at inference that is the only reader of a convolution.
  bool folds(Value v) const {
    if (!fold_ || as<BatchNorm2dInferenceOp>(node(v)) == nullptr) return false;
    const Value x = node(v).inputs[0];
    return as<ConvolutionOp>(node(x)) != nullptr && read_once(x);
  }

  void find_epilogues() {
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!uses_.live(i) || !is_relu(graph_.nodes()[i]) || is_backward(static_cast<int>(i))) continue;
      if (auto match = match_relu(graph_.nodes()[i].inputs[0])) accept(*match, i);
    }
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {  // patterns without a ReLU at their end
      const Value v = graph_.value(static_cast<int>(i), 0);
      if (uses_.live(i) && graph_.nodes()[i].op && !absorbed_[i] && !matches_[i] && folds(v)) accept({.root = v}, i);
    }
  }

  std::optional<Match> match_relu(Value x) {
    if (!read_once(x)) return std::nullopt;
    if (is_norm(x) || is_product(x)) return Match{.root = x, .epilogue = {.relu = true}};
    if (!is_add(node(x))) return std::nullopt;
    for (const std::size_t side : {0, 1}) {
      const Value root = node(x).inputs[side], other = node(x).inputs[1 - side];
      if (is_norm(root) && read_once(root) && root != other) {
        absorbed_[static_cast<std::size_t>(x.node())] = true;
        return Match{.root = root, .residual = other, .epilogue = {.residual = true, .relu = true}};
      }
    }
    return std::nullopt;
  }

  void accept(const Match& match, std::size_t at) {
    matches_[at] = match;
    if (static_cast<std::size_t>(match.root.node()) != at)
      absorbed_[static_cast<std::size_t>(match.root.node())] = true;
    if (folds(match.root)) absorbed_[static_cast<std::size_t>(node(match.root).inputs[0].node())] = true;
  }

  // If the ReLU whose result y the gate reads was the end of a norm, the gradient of the norm can replace the gate.
  void match_gate(int gate) {
    const Value y = node(gate).inputs[0], g = graph_.value(gate, 0);
    const auto& match = matches_[static_cast<std::size_t>(y.node())];
    if (!match || !match->epilogue.relu || uses_.kept(g)) return;
    const int norm = match->root.node();
    int gradient = -1, apply = -1, others = 0;
    for (const int reader : uses_.readers(g)) {
      const Node& r = node(reader);
      const bool of_norm = r.inputs.size() >= 5 && r.inputs[1] == g && r.inputs[3] == graph_.value(norm, 1);
      if (of_norm && (as<BatchNorm2dGradientOp>(r) != nullptr || as<BatchNorm2dGradientSumsOp>(r) != nullptr)) {
        gradient = reader;
      } else if (of_norm && as<BatchNorm2dGradientApplyOp>(r) != nullptr) {
        apply = reader;
      } else {
        ++others;
      }
    }
    if (gradient < 0 || (others > 0 && !match->epilogue.residual)) return;
    gradient_matches_[static_cast<std::size_t>(gate)] = {gradient, y, node(norm).inputs[2], match->epilogue};
    absorbed_[static_cast<std::size_t>(gradient)] = true;
    if (apply >= 0 && !match->epilogue.residual) gates_[apply] = gate;
  }

  void emit(const Match& match, int at, Graph& to, GraphCopy& copy) {
    const Node& root = node(match.root);
    const Graph::Scope scope(to, root.path);
    const Graph::Block block(to, root.block);
    const Value residual = copy(match.residual);
    const Value end = graph_.value(at, 0);
    if (folds(match.root)) {
      copy.map(end, folded(match, residual, to, copy));
      return;
    }
    std::vector<Value> inputs = copy.inputs(root);
    if (residual) inputs.push_back(residual);
    const std::vector<Value> outputs = to.apply(with_epilogue(root, match.epilogue), std::move(inputs));
    copy.map(end, outputs[0]);
    for (std::size_t k = 1; k < outputs.size(); ++k)
      copy.map(graph_.value(match.root.node(), static_cast<int>(k)), outputs[k]);
  }

  void emit_gradient(const GradientMatch& match, int gate, Graph& to, GraphCopy& copy) const {
    const Node& gradient = node(match.gradient);
    const Graph::Scope scope(to, gradient.path);
    const Graph::Block block(to, gradient.block);
    const Value dy = node(gate).inputs[1];
    const bool masks = match.epilogue.residual, adds = masks && is_add(node(dy));
    const auto in = [&](std::size_t k) { return copy(gradient.inputs[k]); };
    std::vector<Value> inputs{in(0), copy(adds ? node(dy).inputs[0] : dy), in(2), in(3), in(4)};
    inputs.push_back(copy(masks ? match.y : match.beta));
    if (adds) inputs.push_back(copy(node(dy).inputs[1]));
    std::shared_ptr<const Op> op;
    if (as<BatchNorm2dGradientOp>(gradient) != nullptr) {
      op = std::make_shared<BatchNorm2dGradientOp>(match.epilogue, adds);
    } else {
      op = std::make_shared<BatchNorm2dGradientSumsOp>(match.epilogue, adds);
    }
    const std::vector<Value> outputs = to.apply(std::move(op), std::move(inputs));
    for (int k = 0; k < 3; ++k) copy.map(graph_.value(match.gradient, k), outputs[static_cast<std::size_t>(k)]);
    if (masks) copy.map(graph_.value(gate, 0), outputs[3]);
  }

  // The second half of a synchronised norm's gradient; it masks dy itself.
  void emit_apply(int apply, int gate, Graph& to, GraphCopy& copy) const {
    const Node& n = node(apply);
    const Graph::Scope scope(to, n.path);
    const Graph::Block block(to, n.block);
    std::vector<Value> inputs;
    for (std::size_t k = 0; k < n.inputs.size(); ++k)
      inputs.push_back(copy(k == 1 ? node(gate).inputs[1] : n.inputs[k]));
    inputs.push_back(copy(gradient_matches_[static_cast<std::size_t>(gate)]->beta));
    copy.map(graph_.value(apply, 0), to.apply(n.op, std::move(inputs))[0]);
  }

  static std::shared_ptr<const Op> with_epilogue(const Node& root, const Epilogue& epilogue) {
    if (const auto* op = as<BatchNorm2dOp>(root)) return std::make_shared<BatchNorm2dOp>(op->epsilon(), epilogue);
    if (const auto* op = as<BatchNorm2dSyncOp>(root)) return op->with(epilogue);
    if (const auto* op = as<BatchNorm2dInferenceOp>(root))
      return std::make_shared<BatchNorm2dInferenceOp>(op->epsilon(), epilogue);
    if (const auto* op = as<ConvolutionOp>(root)) return std::make_shared<ConvolutionOp>(op->options(), epilogue);
    return std::make_shared<LinearOp>(epilogue.relu);
  }

  Value folded(const Match& match, Value residual, Graph& to, GraphCopy& copy) const {
    const Node &norm = node(match.root), &conv = node(norm.inputs[0]);
    const std::vector<Value> c = copy.inputs(conv);  // x, w, [b]
    std::vector<Value> parts{c[1]};                  // w, gamma, beta, mean, variance, [b]
    for (const Value v : std::span(norm.inputs).subspan(1)) parts.push_back(copy(v));
    if (c.size() > 2) parts.push_back(c[2]);
    const double epsilon = as<BatchNorm2dInferenceOp>(norm)->epsilon();
    const std::vector<Value> weights = to.apply(std::make_shared<FoldBatchNormOp>(epsilon), std::move(parts));
    std::vector<Value> inputs{c[0], weights[0], weights[1]};
    if (residual) inputs.push_back(residual);
    const auto& options = as<ConvolutionOp>(conv)->options();
    return to.apply(std::make_shared<ConvolutionOp>(options, match.epilogue), std::move(inputs))[0];
  }

  const Graph& graph_;
  GraphRoots roots_;
  ValueUses uses_;
  bool fold_;
  std::vector<bool> absorbed_;  // by node
  std::vector<std::optional<Match>> matches_;
  std::vector<std::optional<GradientMatch>> gradient_matches_;  // by the node of the gate
  std::map<int, int> gates_;  // by node: the gate that the second half of a gradient absorbs
};

}  // namespace

std::unique_ptr<Graph> fuse_patterns(const Graph& graph, const GraphRoots& roots, bool fold) {
  return Fusion(graph, roots, fold).run();
}

}  // namespace lockstep::plan
