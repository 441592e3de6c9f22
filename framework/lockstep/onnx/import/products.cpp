// Products of matrices, and recurrent layers.
#include <array>

#include "lockstep/core/dtype.h"
#include "lockstep/onnx/import/node_reader.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/recurrent.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::onnx {
namespace {

// alpha op(A) op(B) + beta C: nearly always a linear layer.
void read_gemm(const NodeReader& r) {
  const Value a = r.value(0), b = r.value(1), c = r.value(2);
  const double alpha = r.real_attribute("alpha", 1), beta = r.real_attribute("beta", 1);
  const bool transpose_a = r.whole_attribute("transA", 0) != 0, transpose_b = r.whole_attribute("transB", 0) != 0;
  const bool is_layer = !transpose_a && transpose_b && alpha == 1 && beta == 1;
  if (is_layer && (!c || (c.shape().rank() == 1 && c.shape()[0] == b.shape()[0]))) {
    r.set(linear(a, b, c));
    return;
  }
  Value y = matmul(a, b, transpose_a, transpose_b);
  if (alpha != 1) y = y * alpha;
  if (c) y = y + (beta == 1 ? c : c * beta);
  r.set(y);
}

void read_matmul(const NodeReader& r) { r.set(matmul(r.value(0), r.value(1))); }

enum class Direction : std::uint8_t { Forward, Reverse, Both };

Direction direction_of(const NodeReader& r) {
  const std::string text = r.text_attribute("direction", "forward");
  r.require(text == "forward" || text == "reverse" || text == "bidirectional",
            formatted("direction is {}, expected forward, reverse or bidirectional", text));
  return text == "forward" ? Direction::Forward : text == "reverse" ? Direction::Reverse : Direction::Both;
}

// The gates' rows of one direction of a weight (D, G H, ...), in the order of the op.
Value ordered(Value weight, int direction, std::int64_t hidden, std::span<const std::size_t> order) {
  const std::vector<Value> gates = split(select(weight, 0, direction), hidden);
  std::vector<Value> chosen;
  for (const std::size_t gate : order) chosen.push_back(gates[gate]);
  return concat(chosen, 0);
}

// A state (D, N, H) as (N, D H).
Value state_of(Value state) {
  if (!state) return {};
  const Shape shape = state.shape();
  return reshape(permute(state, {1, 0, 2}), Shape{shape[1], shape[0] * shape[2]});
}

struct RecurrentNode {
  std::span<const std::size_t> order;  // of the gates of the file, in the op's
  std::size_t cell;                    // the input that is the initial cell; 0: none
};

RecurrentOutputs run_recurrent(const NodeReader& r, const RecurrentNode& node, std::int64_t hidden, bool reverse) {
  const Value weight = r.value(1), recurrent = r.value(2), bias = r.value(3);
  std::vector<RecurrentWeights> directions;
  for (int d = 0; d < static_cast<int>(weight.shape()[0]); ++d) {
    RecurrentWeights weights{.weight_ih = ordered(weight, d, hidden, node.order),
                             .weight_hh = ordered(recurrent, d, hidden, node.order)};
    if (bias) {
      const std::vector<Value> halves = chunk(bias, 2, 1);
      weights.bias_ih = ordered(halves[0], d, hidden, node.order);
      weights.bias_hh = ordered(halves[1], d, hidden, node.order);
    }
    directions.push_back(weights);
  }
  const Value x = reverse ? flip(r.value(0), {0}) : r.value(0);  // (T, N, F)
  // Zeros have the number of samples of the file; without states the op takes zeros by itself.
  const bool zeros = !r.has(5) || (r.is_zero(5) && (node.cell == 0 || r.is_zero(node.cell)));
  const Value h = zeros ? Value() : state_of(r.value(5));
  const Value c = zeros || node.cell == 0 ? Value() : state_of(r.value(node.cell));
  RecurrentOutputs outputs = node.cell != 0 ? lstm_steps_first(x, directions, h, c) : gru_steps_first(x, directions, h);
  if (reverse) outputs.y = flip(outputs.y, {0});
  return outputs;
}

void read_recurrent(const NodeReader& r, const RecurrentNode& node) {
  r.require(r.shape(0).rank() == 3 && r.shape(1).rank() == 3 && r.shape(2).rank() == 3,
            "X, W or R do not have three dimensions");
  const std::int64_t hidden = r.shape(2)[2], count = r.shape(1)[0];
  const Direction direction = direction_of(r);
  r.require(count == (direction == Direction::Both ? 2 : 1) &&
                r.shape(2)[1] == static_cast<std::int64_t>(node.order.size()) * hidden,
            formatted("weights of shapes {} and {} do not fit its direction and {} gates", r.shape(1).str(),
                      r.shape(2).str(), node.order.size()));
  r.require(!r.has(4), "sequences of different lengths, expected all of one length");
  r.require(r.whole_attribute("layout", 0) == 0, "layout is 1, expected 0");
  const RecurrentOutputs outputs = run_recurrent(r, node, hidden, direction == Direction::Reverse);
  const std::int64_t samples = r.shape(0)[1], steps = r.shape(0)[0];
  const auto state = [&](Value value) {  // (N, D H) as (D, N, H)
    return permute(reshape(value, Shape{samples, count, hidden}), {1, 0, 2});
  };
  const Value y = reshape(outputs.y, Shape{steps, samples, count, hidden});
  const std::size_t outputs_read = r.node().outputs.size();
  r.set(permute(y, {0, 2, 1, 3}));
  if (outputs_read > 1) r.set(state(outputs.h), 1);
  if (outputs_read > 2) r.set(state(outputs.c), 2);
}

void read_lstm(const NodeReader& r) {
  static constexpr std::array<std::size_t, 4> kOrder{0, 2, 3, 1};  // i o f c in the file, i f g o in the op
  r.require(!r.has(7), "peepholes, expected none");
  r.require(r.has(5) == r.has(6), "one of the two initial states, expected both or none");
  read_recurrent(r, {.order = kOrder, .cell = 6});
}

void read_gru(const NodeReader& r) {
  static constexpr std::array<std::size_t, 3> kOrder{1, 0, 2};  // z r h in the file, r z n in the op
  r.require(r.whole_attribute("linear_before_reset", 0) != 0, "linear_before_reset is 0, expected 1, as in PyTorch");
  read_recurrent(r, {.order = kOrder, .cell = 0});
}

}  // namespace

std::span<const Reading> product_readings() {
  static const std::vector<Reading> readings{
      {"Gemm", read_gemm, {"alpha", "beta", "transA", "transB"}},
      {"MatMul", read_matmul},
      {"LSTM", read_lstm, {"direction", "hidden_size", "layout"}},
      {"GRU", read_gru, {"direction", "hidden_size", "layout", "linear_before_reset"}},
  };
  return readings;
}

}  // namespace lockstep::onnx
