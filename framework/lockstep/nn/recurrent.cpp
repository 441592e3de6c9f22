#include "lockstep/nn/recurrent.h"

#include "lockstep/core/error.h"
#include "lockstep/graph/module_path.h"
#include "lockstep/nn/init.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/permute.h"

namespace lockstep::nn {
namespace {

std::string_view site_of(RecurrentCell cell) { return cell == RecurrentCell::Lstm ? "lstm" : "gru"; }

}  // namespace

RecurrentLayers::RecurrentLayers(RecurrentCell cell, RecurrentConfig config) : cell_(cell), config_(config) {
  check(config.in >= 1 && config.hidden >= 1 && config.layers >= 1, site_of(cell),
        "{} input features, {} hidden features and {} layers, expected at least 1 of each", config.in, config.hidden,
        config.layers);
  check(config.dropout >= 0 && config.dropout < 1, site_of(cell), "dropout is {}, expected a number in [0, 1)",
        config.dropout);
  const std::int64_t directions = config.bidirectional ? 2 : 1;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    const std::int64_t in = l == 0 ? config.in : directions * config.hidden;
    const std::string suffix = formatted("_l{}", l);
    std::vector<Direction>& layer = layers_.emplace_back();
    layer.push_back(add_direction(suffix, in));
    if (config.bidirectional) layer.push_back(add_direction(suffix + "_reverse", in));
  }
}

RecurrentLayers::Direction RecurrentLayers::add_direction(const std::string& suffix, std::int64_t in) {
  const std::int64_t gates = RecurrentOptions{.cell = cell_}.gates() * config_.hidden;
  const auto parameter = [&](const char* name, Shape shape, Role role) {
    return &add(name + suffix,
                Parameter{.shape = std::move(shape), .initialize = torch_default(config_.hidden), .role = role});
  };
  Direction d{};
  d.weight_ih = parameter("weight_ih", {gates, in}, Role::Weight);
  d.weight_hh = parameter("weight_hh", {gates, config_.hidden}, Role::Weight);
  if (config_.bias) {
    d.bias_ih = parameter("bias_ih", {gates}, Role::Bias);
    d.bias_hh = parameter("bias_hh", {gates}, Role::Bias);
  }
  return d;
}

// x (T, N, F): the mask of a sample depends on its place in the batch, which dropout() finds along the first axis.
Value RecurrentLayers::dropped(Value x, std::size_t layer) const {
  if (!x.graph().training() || config_.dropout == 0) return x;
  return transpose(dropout(transpose(x, 0, 1), config_.dropout, formatted("{}.l{}", path(), layer)), 0, 1);
}

std::vector<RecurrentOutputs> RecurrentLayers::run(Value x, const std::vector<Value>& h,
                                                   const std::vector<Value>& c) const {
  const std::string path = path_or_model(this->path());
  check(h.empty() || h.size() == layers_.size(), site_of(cell_), "{}: initial states of {} layers, expected {} or none",
        path, h.size(), layers_.size());
  check(x.shape().rank() == 3 && x.shape()[2] == config_.in, site_of(cell_),
        "{}: input is {}, expected (samples, steps, {})", path, x.type().str(), config_.in);
  Graph& g = x.graph();
  const auto value = [&g](const Parameter* p) { return p == nullptr ? Value() : g.parameter(*p); };
  std::vector<RecurrentOutputs> outputs;
  x = transpose(x, 0, 1);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (l > 0) x = dropped(outputs.back().y, l);
    std::vector<RecurrentWeights> weights;
    for (const Direction& d : layers_[l])
      weights.push_back({value(d.weight_ih), value(d.weight_hh), value(d.bias_ih), value(d.bias_hh)});
    const Value first = h.empty() ? Value() : h[l];
    outputs.push_back(cell_ == RecurrentCell::Lstm ? lstm_steps_first(x, weights, first, c.empty() ? Value() : c[l])
                                                   : gru_steps_first(x, weights, first));
  }
  outputs.back().y = transpose(outputs.back().y, 0, 1);
  return outputs;
}

LSTM::Output LSTM::operator()(Value x, const std::vector<State>& initial) const {
  std::vector<Value> h, c;
  for (const State& s : initial) {
    h.push_back(s.h);
    c.push_back(s.c);
  }
  const std::vector<RecurrentOutputs> layers = run(x, h, c);
  Output output{.y = layers.back().y, .states = {}};
  for (const RecurrentOutputs& l : layers) output.states.push_back({l.h, l.c});
  return output;
}

GRU::Output GRU::operator()(Value x, const std::vector<Value>& initial) const {
  const std::vector<RecurrentOutputs> layers = run(x, initial, {});
  Output output{.y = layers.back().y, .states = {}};
  for (const RecurrentOutputs& l : layers) output.states.push_back(l.h);
  return output;
}

}  // namespace lockstep::nn
