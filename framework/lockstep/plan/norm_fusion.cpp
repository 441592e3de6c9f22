#include "lockstep/plan/norm_fusion.h"

#include <algorithm>
#include <map>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/graph/copy.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/batch_norm2d_sum.h"
#include "lockstep/ops/convolution_of_norm.h"
#include "lockstep/plan/node_op.h"
#include "lockstep/plan/value_uses.h"

namespace lockstep::plan {
namespace {

class NormFusion {
 public:
  NormFusion(const Graph& graph, const GraphRoots& roots, const kernels::KernelOptions& options)
      : graph_(graph),
        roots_(roots),
        options_(options),
        uses_(graph, roots.traced, roots.gradients),
        taken_(graph.nodes().size(), false) {
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const auto* norm = uses_.live(i) ? as<BatchNorm2dOp>(graph.nodes()[i]) : nullptr;
      if (norm == nullptr) continue;
      const std::string reason = obstacle(*norm, graph.value(static_cast<int>(i), 0));
      taken_[i] = reason.empty();
      if (!reason.empty()) remarks_[static_cast<int>(i)] = "writes its result, as " + reason;
    }
  }

  // Each node becomes one node, so the number of forward nodes stays.
  std::unique_ptr<Graph> run() {
    auto result = graph_.empty_copy();
    GraphCopy copy(graph_, *result);
    for (int i = 0; i < static_cast<int>(graph_.nodes().size()); ++i) {
      const Node& node = graph_.nodes()[static_cast<std::size_t>(i)];
      const bool reads_norm = std::ranges::any_of(node.inputs, [&](Value v) { return is_taken(v); });
      if (taken_[static_cast<std::size_t>(i)]) {
        emit_statistics(i, *result, copy);
      } else if (reads_norm) {
        emit_reader(i, *result, copy);
      } else {
        copy.copy(i);
      }
      if (const auto remark = remarks_.find(i); remark != remarks_.end())
        result->set_remark(copy(graph_.value(i, 0)), remark->second);
    }
    copy.finish();
    for_each_value(roots_.traced, [&](Value& v) { v = copy(v); });
    for (ParameterGradient& g : roots_.gradients) g.value = copy(g.value);
    return result;
  }

 private:
  bool is_taken(Value v) const { return v.index() == 0 && taken_[static_cast<std::size_t>(v.node())]; }

  // Returns the reason for which a norm must write its result y; empty: its readers normalise.
  std::string obstacle(const BatchNorm2dOp& norm, Value y) const {
    const bool relu = norm.epilogue() == Epilogue{.relu = true};
    if (!relu && norm.epilogue() != Epilogue{}) return "it adds a residual";
    if (uses_.kept(y)) return "the model keeps it";
    for (const int i : uses_.readers(y)) {
      const Node& reader = graph_.nodes()[static_cast<std::size_t>(i)];
      const bool fits = relu ? convolves(reader, y) : adds_residual(reader, y);
      if (!fits || !normalises(reader))
        return formatted("{} ({}) does not normalise what it reads", reader.path, reader.op->name());
    }
    return relu || uses_.read_once(y) ? "" : "several ops add it";
  }

  static bool convolves(const Node& reader, Value y) {
    const bool convolution =
        as<ConvolutionOp>(reader) != nullptr || as<ConvolutionBackwardWeightsOp>(reader) != nullptr;
    return convolution && std::ranges::count(reader.inputs, y) == 1 && reader.inputs[0] == y;
  }

  // Whether the reader is a norm at the end of a residual block, which adds the value.
  static bool adds_residual(const Node& reader, Value y) {
    const auto* norm = as<BatchNorm2dOp>(reader);
    return norm != nullptr && norm->epilogue().residual && reader.inputs.back() == y;
  }

  // Whether the kernel that the rules prefer for the reader has a like for a normalised input.
  bool normalises(const Node& reader) const {
    kernels::KernelRequest request{reader.op.get(), {}, reader.outputs, reader.path, options_};
    for (const Value v : reader.inputs) request.inputs.push_back(v.type());
    const auto offers = kernels::kernel_registry().offers(request, std::vector<Layout>(request.inputs.size()));
    return !offers.empty() && offers[0].normalises;
  }

  void emit_statistics(int norm, Graph& to, GraphCopy& copy) const {
    const Node& node = graph_.nodes()[static_cast<std::size_t>(norm)];
    const Graph::Scope scope(to, node.path);
    const Graph::Block block(to, node.block);
    const auto statistics =
        to.apply(std::make_shared<BatchNorm2dStatisticsOp>(as<BatchNorm2dOp>(node)->epsilon()), {copy(node.inputs[0])});
    for (int k = 0; k < 3; ++k) copy.map(graph_.value(norm, k + 1), statistics[static_cast<std::size_t>(k)]);
  }

  void emit_reader(int reader, Graph& to, GraphCopy& copy) const {
    const Node& node = graph_.nodes()[static_cast<std::size_t>(reader)];
    const Graph::Scope scope(to, node.path);
    const Graph::Block block(to, node.block);
    const int norm = std::ranges::find_if(node.inputs, [&](Value v) { return is_taken(v); })->node();
    const std::vector<Value>& of_norm = graph_.nodes()[static_cast<std::size_t>(norm)].inputs;  // x, gamma, beta
    std::vector<Value> inputs;  // the norm's x in place of its result
    for (const Value v : node.inputs) inputs.push_back(copy(v.node() == norm && v.index() == 0 ? of_norm[0] : v));
    for (const Value v : {of_norm[1], of_norm[2], graph_.value(norm, 1), graph_.value(norm, 2)})
      inputs.push_back(copy(v));
    const std::vector<Value> outputs = to.apply(op_of_norm(node), std::move(inputs));
    for (std::size_t k = 0; k < outputs.size(); ++k) copy.map(graph_.value(reader, static_cast<int>(k)), outputs[k]);
  }

  static std::shared_ptr<const Op> op_of_norm(const Node& reader) {
    if (const auto* op = as<ConvolutionOp>(reader)) return std::make_shared<ConvolutionOfNormOp>(*op);
    if (const auto* op = as<BatchNorm2dOp>(reader)) return std::make_shared<BatchNorm2dSumOp>(op->epsilon());
    return std::make_shared<ConvolutionOfNormBackwardWeightsOp>(*as<ConvolutionBackwardWeightsOp>(reader));
  }

  const Graph& graph_;
  GraphRoots roots_;
  kernels::KernelOptions options_;
  ValueUses uses_;
  std::vector<bool> taken_;             // by node: norms whose readers normalise
  std::map<int, std::string> remarks_;  // by node: of the other norms
};

}  // namespace

std::unique_ptr<Graph> fuse_norms(const Graph& graph, const GraphRoots& roots, const kernels::KernelOptions& options) {
  return NormFusion(graph, roots, options).run();
}

}  // namespace lockstep::plan
