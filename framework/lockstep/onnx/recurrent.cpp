// LSTM and GRU. Here the products of the input are a linear layer in front of the recurrence; ONNX's operators make
// them themselves, from x and the weights. Gates are put in ONNX's order.
#include "lockstep/ops/recurrent.h"

#include <string>
#include <vector>

#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"

namespace lockstep::onnx {
namespace {

struct WrittenRecurrent {
  const NodeWriter& w;
  const RecurrentOptions& options;
  std::vector<Value> sources;  // sources_of(): per direction x, W_ih, [bias], W_hh, [its bias]; then initial states
  std::int64_t samples, steps, hidden;
  std::size_t next = 0;  // of the sources

  std::string take() { return w.name_of(sources[next++]); }
  // Rows of (G, ...) in ONNX's order of gates, i o f g or z r n, in the shape (1, G, ...).
  std::string ordered(const std::string& name, const Numbers& shape) const {
    const Numbers gates = options.lstm() ? Numbers{0, 3, 1, 2} : Numbers{1, 0, 2};
    Numbers rows;
    for (const std::int64_t gate : gates) {
      for (std::int64_t i = 0; i < hidden; ++i) rows.push_back(gate * hidden + i);
    }
    Document& d = w.document;
    const std::string chosen = d.add("Gather", {name, d.list(rows)}, {{"axis", std::int64_t{0}}});
    return d.add("Reshape", {chosen, d.list(shape)});
  }
};

struct DirectionResult {
  std::string y;                    // (T, N, H)
  std::vector<std::string> states;  // (N, H) each
};

std::vector<std::string> initial_states(const WrittenRecurrent& node, std::size_t direction) {
  std::vector<std::string> states;
  Document& d = node.w.document;
  const std::size_t count = node.options.lstm() ? 2 : 1;
  const auto from = static_cast<std::int64_t>(direction) * node.hidden;
  for (std::size_t k = 0; node.options.initial && k < count; ++k) {
    const std::string all = node.w.name_of(node.sources[node.sources.size() - count + k]);
    const std::string own = d.add("Slice", {all, d.list({from}), d.list({from + node.hidden}), d.list({1})});
    states.push_back(d.add("Reshape", {own, d.list({1, node.samples, node.hidden})}));
  }
  return states;
}

DirectionResult write_direction(WrittenRecurrent& node, std::size_t direction, bool has_bias) {
  const NodeWriter& w = node.w;
  Document& d = w.document;
  const std::int64_t gates = node.options.gates() * node.hidden;
  const Value x = node.sources[node.next];
  const std::string first = d.add("Reshape", {node.take(), d.list({node.steps, node.samples, x.shape()[1]})});
  const std::string weight = node.ordered(node.take(), {1, gates, x.shape()[1]});
  std::string bias = has_bias ? node.ordered(node.take(), {1, gates}) : "";
  const std::string recurrent = node.ordered(node.take(), {1, gates, node.hidden});
  if (has_bias) {
    const std::string zeros = d.add("Expand", {d.scalar(0, w.dtype()), d.list({1, gates})});
    const std::string other = node.options.bias ? node.ordered(node.take(), {1, gates}) : zeros;
    bias = d.add("Concat", {bias, other}, {{"axis", std::int64_t{1}}});
  }
  std::vector<std::string> inputs{first, weight, recurrent};
  const std::vector<std::string> states = initial_states(node, direction);
  if (has_bias || !states.empty()) inputs.push_back(bias);
  if (!states.empty()) inputs.emplace_back();  // all sequences are as long
  inputs.insert(inputs.end(), states.begin(), states.end());
  std::vector<Attribute> attributes{{"hidden_size", node.hidden},
                                    {"direction", std::string(direction == 0 ? "forward" : "reverse")}};
  if (!node.options.lstm()) attributes.emplace_back("linear_before_reset", std::int64_t{1});
  std::vector<std::string> outputs{d.fresh(), d.fresh()};
  if (node.options.lstm()) outputs.push_back(d.fresh());
  d.add(node.options.lstm() ? "LSTM" : "GRU", inputs, outputs, attributes);
  DirectionResult result;
  result.y = d.add("Reshape", {outputs[0], d.list({node.steps, node.samples, node.hidden})});
  for (std::size_t k = 1; k < outputs.size(); ++k)
    result.states.push_back(d.add("Reshape", {outputs[k], d.list({node.samples, node.hidden})}));
  return result;
}

}  // namespace

bool write_recurrent(const NodeWriter& w) {
  const auto* op = dynamic_cast<const RecurrentOp*>(w.node.op.get());
  if (op == nullptr) return false;
  const RecurrentOptions& options = op->options();
  WrittenRecurrent node{.w = w,
                        .options = options,
                        .sources = sources_of(w.graph, w.node),
                        .samples = w.shape()[1],
                        .steps = w.shape()[0],
                        .hidden = w.shape()[2] / options.directions};
  const auto directions = static_cast<std::size_t>(options.directions);
  const std::size_t states = options.lstm() ? 2 : 1;
  const std::size_t others = options.bias ? 4 : 3;  // sources of a direction without a bias of the input's product
  const bool has_bias = node.sources.size() - (options.initial ? states : 0) > others * directions || options.bias;
  std::vector<std::string> y;
  std::vector<std::vector<std::string>> last(states);
  for (std::size_t k = 0; k < directions; ++k) {
    const DirectionResult result = write_direction(node, k, has_bias);
    y.push_back(result.y);
    for (std::size_t s = 0; s < states; ++s) last[s].push_back(result.states[s]);
  }
  w.document.add("Concat", y, {{"axis", std::int64_t{2}}}, w.outputs[0]);
  for (std::size_t s = 0; s < states; ++s)
    w.document.add("Concat", last[s], {{"axis", std::int64_t{1}}}, w.outputs[1 + s]);
  return true;
}

}  // namespace lockstep::onnx
