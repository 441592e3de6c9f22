#include "tests/parity/operator_model.h"

#include <algorithm>

#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool2d.h"
#include "lockstep/ops/reduce.h"

namespace lockstep::parity {
namespace {

bool is_function_of_one(std::string_view op) {
  return std::ranges::any_of(pointwise::functions(),
                             [op](const pointwise::Function& f) { return f.name == op && f.operands == 1; });
}

}  // namespace

OperatorModel::OperatorModel(const nlohmann::json& request, std::span<const io::NamedTensor> operands)
    : request_(request) {
  for (const io::NamedTensor& t : operands) {
    if (t.name.starts_with("bn.")) continue;
    operands_[t.name] = &add(t.name, Parameter{.shape = t.tensor.shape(), .initialize = nn::constant(0)});
  }
  if (request_.at("op") != "batch_norm2d") return;
  auto norm = std::make_unique<nn::Child<nn::BatchNorm2d>>(
      this, "bn",
      nn::BatchNorm2dConfig{.channels = operands_.at("x")->shape[1],
                            .epsilon = request_.value("epsilon", 1e-5),
                            .momentum = request_.value("norm_momentum", 0.1)});
  norm->freeze_statistics(request_.value("frozen", false));
  norm_ = std::move(norm);
}

Value OperatorModel::operand(Graph& graph, const std::string& name) const {
  const auto found = operands_.find(name);
  return found == operands_.end() ? Value() : graph.parameter(*found->second);
}

Value OperatorModel::apply(Graph& graph) const {
  const std::string op = request_.at("op");
  const Value x = operand(graph, "x");
  if (op == "conv2d") {
    return conv2d(x, operand(graph, "weight"), operand(graph, "bias"),
                  {.stride_h = option("stride_h", 1),
                   .stride_w = option("stride_w", 1),
                   .padding_h = option("padding_h", 0),
                   .padding_w = option("padding_w", 0),
                   .dilation_h = option("dilation_h", 1),
                   .dilation_w = option("dilation_w", 1),
                   .groups = option("groups", 1)});
  }
  if (op == "max_pool2d" || op == "average_pool2d") {
    const Pool2dOptions options{.kernel_h = option("kernel_h", 2),
                                .kernel_w = option("kernel_w", 2),
                                .stride_h = option("stride_h", 2),
                                .stride_w = option("stride_w", 2),
                                .padding_h = option("padding_h", 0),
                                .padding_w = option("padding_w", 0),
                                .dilation_h = option("dilation_h", 1),
                                .dilation_w = option("dilation_w", 1),
                                .ceil_mode = request_.value("ceil_mode", false),
                                .count_include_pad = request_.value("count_include_pad", true)};
    return op == "max_pool2d" ? max_pool2d(x, options) : average_pool2d(x, options);
  }
  if (op == "global_average_pool2d") return global_average_pool2d(x);
  if (op == "batch_norm2d") return static_cast<const nn::BatchNorm2d&>(*norm_)(x);
  if (op == "linear") return linear(x, operand(graph, "weight"), operand(graph, "bias"));
  check(is_function_of_one(op), "parity", "there is no op '{}' here", op);
  return apply_pointwise(op, {x});
}

bool OperatorModel::is_loss() const { return parity::is_loss(request_); }

plan::Traced OperatorModel::operator()(const plan::Inputs& in) const {
  Graph& graph = in.graph();
  if (is_loss()) return {.loss = loss_of(request_, operand(graph, "x"), in)};
  const Value y = apply(graph);
  graph.observe("output", y);
  return {.loss = sum(y * in["cotangent"]) * (1 / static_cast<double>(y.shape()[0])), .prediction = y};
}

}  // namespace lockstep::parity
