#include "tests/parity/operator_model.h"

#include <algorithm>

#include <functional>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/recurrent.h"
#include "lockstep/ops/convolution.h"
#include "lockstep/ops/fourier.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/spectral_product.h"
#include "tests/parity/attention_model.h"
#include "tests/parity/shape_model.h"
#include "tests/parity/spatial_model.h"

namespace lockstep::parity {
namespace {

bool is_function_of_one(std::string_view op) {
  return std::ranges::any_of(pointwise::functions(),
                             [op](const pointwise::Function& f) { return f.name == op && f.operands == 1; });
}

bool is_recurrent(std::string_view op) { return op == "lstm" || op == "gru"; }
bool is_transform(std::string_view op) { return op.find("fft") != std::string_view::npos; }

}  // namespace

OperatorModel::OperatorModel(const nlohmann::json& request, std::span<const io::NamedTensor> operands)
    : request_(request) {
  for (const io::NamedTensor& t : operands) {
    if (t.name.starts_with("bn.") || t.name.starts_with("rnn.") || t.name.starts_with("layer.")) continue;
    operands_[t.name] = &add(t.name, Parameter{.shape = t.tensor.shape(), .initialize = nn::constant(0)});
  }
  if (is_recurrent(request_.at("op").get<std::string>())) {
    add_recurrent();
  } else if ((attention_ = make_attention(this, request_))) {
    return;
  } else if (operands_.contains("x")) {
    norm_ = make_norm(this, request_, operands_.at("x")->shape);
  }
}

void OperatorModel::add_recurrent() {
  const nn::RecurrentConfig config{.in = option("in", 1),
                                   .hidden = option("hidden", 1),
                                   .layers = option("layers", 1),
                                   .bias = request_.value("bias", true),
                                   .bidirectional = request_.value("bidirectional", false)};
  if (request_.at("op") == "lstm") {
    recurrent_ = std::make_unique<nn::Child<nn::LSTM>>(this, "rnn", config);
  } else {
    recurrent_ = std::make_unique<nn::Child<nn::GRU>>(this, "rnn", config);
  }
}

// y, or the state of the last layer that the request names.
Value OperatorModel::recurrent(Value x) const {
  const std::string read = request_.value("read", "y");
  const Value h = operand(x.graph(), "h"), c = operand(x.graph(), "c");
  if (const auto* gru = dynamic_cast<const nn::GRU*>(recurrent_.get())) {
    const auto out = (*gru)(x, h ? std::vector<Value>{h} : std::vector<Value>{});
    return read == "y" ? out.y : out.states.back();
  }
  const auto& lstm = dynamic_cast<const nn::LSTM&>(*recurrent_);
  const auto out = lstm(x, h ? std::vector<nn::LSTM::State>{{h, c}} : std::vector<nn::LSTM::State>{});
  return read == "y" ? out.y : read == "h" ? out.states.back().h : out.states.back().c;
}

Value OperatorModel::transform(Value x) const {
  const std::string op = request_.at("op"), name = request_.value("norm", "backward");
  const int axes = request_.value("axes", 1);
  const FftNorm norm = name == "ortho" ? FftNorm::Ortho : name == "forward" ? FftNorm::Forward : FftNorm::Backward;
  if (op == "fft") return fft(x, axes, norm);
  if (op == "ifft") return ifft(x, axes, norm);
  if (op == "rfft") return rfft(x, axes, norm);
  check(op == "irfft", "parity", "there is no op '{}' here", op);
  return irfft(x, Shape(request_.at("sizes").get<std::vector<std::int64_t>>()), norm);
}

Value OperatorModel::operand(Graph& graph, const std::string& name) const {
  const auto found = operands_.find(name);
  return found == operands_.end() ? Value() : graph.parameter(*found->second);
}

Value OperatorModel::apply(Graph& graph) const {
  const std::string op = request_.at("op");
  const Value x = operand(graph, "x");
  if (is_spatial(request_)) return apply_spatial(request_, x, operand(graph, "weight"), operand(graph, "bias"));
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
  if (norm_) return (*norm_)(x);
  if (is_recurrent(op)) return recurrent(x);
  if (is_transform(op)) return transform(x);
  if (op == "spectral_product") return spectral_product(x, operand(graph, "weight"));
  const Operand named = [&](const std::string& name) { return operand(graph, name); };
  for (const Value y : {apply_attention(request_, attention_.get(), named), apply_axis_operator(request_, named)}) {
    if (y) return y;
  }
  if (op == "linear") return linear(x, operand(graph, "weight"), operand(graph, "bias"));
  if (is_shape_op(request_)) return apply_shape_op(request_, x, operand(graph, "y"));
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
