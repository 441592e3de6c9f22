#include "lockstep/plan/fusion.h"

#include <optional>

#include "lockstep/graph/copy.h"
#include "lockstep/ops/batch_norm2d_sync.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/linear.h"

namespace lockstep {
namespace {

template <class T>
const T* as(const Node& node) {
  return dynamic_cast<const T*>(node.op.get());
}

bool is_relu(const Node& node) {
  const auto* op = as<UnaryOp>(node);
  return op != nullptr && op->kind() == Unary::Relu;
}

bool is_add(const Node& node) {
  const auto* op = as<BinaryOp>(node);
  return op != nullptr && op->kind() == Binary::Add;
}

// What ends at one node: the producer it grows from and the epilogue that is absorbed into it.
struct Match {
  Value root;           // the producer's result
  Value residual = {};  // added to it
  Epilogue epilogue = {};
};

class Fusion {
 public:
  Fusion(const Graph& graph, const Traced& traced, bool fold) : graph_(graph), fold_(fold && !graph.training()) {
    for (const Node& node : graph.nodes()) readers_.emplace_back(node.outputs.size());
    for (const Node& node : graph.nodes()) {
      for (const Value v : node.inputs) ++readers(v);
    }
    const auto root = [&](Value v) {
      if (v) readers(v) += 2;  // never absorbed
    };
    for_each_value(traced, root);
    for (const auto& [name, v] : graph.observed()) root(v);
    find_epilogues();
  }

  std::unique_ptr<Graph> run(Traced& traced) {
    auto result = graph_.empty_copy();
    GraphCopy copy(graph_, *result);
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (absorbed_[i]) continue;
      if (matches_[i]) {
        emit(*matches_[i], static_cast<int>(i), *result, copy);
      } else {
        copy.copy(static_cast<int>(i));
      }
    }
    copy.finish();
    for_each_value(traced, [&](Value& v) { v = copy(v); });
    return result;
  }

 private:
  int& readers(Value v) { return readers_[static_cast<std::size_t>(v.node())][static_cast<std::size_t>(v.index())]; }
  const Node& node(Value v) const { return graph_.node(v); }
  bool read_once(Value v) { return readers(v) == 1; }

  // Whose result alone is read: statistics that a model's own op reads would have to exist before the end of the node.
  bool is_norm(Value v) {
    for (std::size_t k = 1; k < node(v).outputs.size(); ++k) {
      if (readers(graph_.value(v.node(), static_cast<int>(k))) > 0) return false;
    }
    return v.index() == 0 && (as<BatchNorm2dOp>(node(v)) != nullptr || as<BatchNorm2dSyncOp>(node(v)) != nullptr ||
                              as<BatchNorm2dInferenceOp>(node(v)) != nullptr);
  }
  bool is_product(Value v) const { return as<Conv2dOp>(node(v)) != nullptr || as<LinearOp>(node(v)) != nullptr; }
  // A batch norm at inference whose input is a convolution that nobody else reads.
  bool folds(Value v) {
    if (!fold_ || as<BatchNorm2dInferenceOp>(node(v)) == nullptr) return false;
    const Value x = node(v).inputs[0];
    return as<Conv2dOp>(node(x)) != nullptr && read_once(x);
  }

  void find_epilogues() {
    absorbed_.resize(graph_.nodes().size(), false);
    matches_.resize(graph_.nodes().size());
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!is_relu(graph_.nodes()[i])) continue;
      if (auto match = match_relu(graph_.nodes()[i].inputs[0])) accept(*match, i);
    }
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {  // what has no ReLU after it
      const Value v = graph_.value(static_cast<int>(i), 0);
      if (graph_.nodes()[i].op && !absorbed_[i] && !matches_[i] && folds(v)) accept({.root = v}, i);
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

  void emit(const Match& match, int at, Graph& to, GraphCopy& copy) {
    const Node& root = node(match.root);
    const Graph::Scope scope(to, root.place);
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

  static std::shared_ptr<const Op> with_epilogue(const Node& root, const Epilogue& epilogue) {
    if (const auto* op = as<BatchNorm2dOp>(root)) return std::make_shared<BatchNorm2dOp>(op->epsilon(), epilogue);
    if (const auto* op = as<BatchNorm2dSyncOp>(root)) return op->with(epilogue);
    if (const auto* op = as<BatchNorm2dInferenceOp>(root))
      return std::make_shared<BatchNorm2dInferenceOp>(op->epsilon(), epilogue);
    if (const auto* op = as<Conv2dOp>(root)) return std::make_shared<Conv2dOp>(op->options(), epilogue);
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
    const auto& options = as<Conv2dOp>(conv)->options();
    return to.apply(std::make_shared<Conv2dOp>(options, match.epilogue), std::move(inputs))[0];
  }

  const Graph& graph_;
  bool fold_;
  std::vector<std::vector<int>> readers_;  // by node and output
  std::vector<bool> absorbed_;             // by node
  std::vector<std::optional<Match>> matches_;
};

}  // namespace

std::unique_ptr<Graph> fuse(const Graph& graph, Traced& traced, bool fold) {
  return Fusion(graph, traced, fold).run(traced);
}

}  // namespace lockstep
