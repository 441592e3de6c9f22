#include "lockstep/ops/recurrent.h"

#include <cmath>

#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "tests/ops/row.h"

namespace lockstep::optest {
namespace {

constexpr std::int64_t kSamples = 3, kFeatures = 4;

enum class Read : std::uint8_t { Sequence, Last, All };  // y; h and c after the last step; all of them

struct RecurrentSetting {
  RecurrentCell cell;
  std::int64_t steps = 4, hidden = 3;
  int directions = 1;
  bool bias = true, initial = false;
  Read read = Read::Sequence;
  std::int64_t gates() const { return (cell == RecurrentCell::Lstm ? 4 : 3) * hidden; }
  std::size_t per_direction() const { return bias ? 4 : 2; }
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// The values that a cell needs of one direction: x, weight_ih, weight_hh, and both biases, if there are any.
class Cell {
 public:
  Cell(const RecurrentSetting& s, std::span<const Array> in, int direction)
      : s_(s), in_(in), first_(1 + static_cast<std::size_t>(direction) * s.per_direction()) {}
  // Element `row` of W_ih x + b_ih at a step of a sample, and of W_hh h + b_hh.
  double by_input(std::int64_t n, std::int64_t t, std::int64_t row) const {
    double total = s_.bias ? in_[first_ + 2][row] : 0;
    for (std::int64_t k = 0; k < kFeatures; ++k)
      total += in_[first_].at(row, k) * in_[0][(n * s_.steps + t) * kFeatures + k];
    return total;
  }
  double by_hidden(const std::vector<double>& h, std::int64_t row) const {
    double total = s_.bias ? in_[first_ + 3][row] : 0;
    for (std::int64_t k = 0; k < s_.hidden; ++k) total += in_[first_ + 1].at(row, k) * h[static_cast<std::size_t>(k)];
    return total;
  }
  void step(std::int64_t n, std::int64_t t, std::vector<double>& h, std::vector<double>& c) const {
    const std::vector<double> before = h;
    for (std::int64_t j = 0; j < s_.hidden; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const auto sum = [&](std::int64_t gate) {
        return by_input(n, t, gate * s_.hidden + j) + by_hidden(before, gate * s_.hidden + j);
      };
      if (s_.cell == RecurrentCell::Lstm) {
        c[at] = logistic(sum(1)) * c[at] + logistic(sum(0)) * std::tanh(sum(2));
        h[at] = logistic(sum(3)) * std::tanh(c[at]);
      } else {
        const double r = logistic(sum(0)), z = logistic(sum(1));
        const double candidate =
            std::tanh(by_input(n, t, 2 * s_.hidden + j) + r * by_hidden(before, 2 * s_.hidden + j));
        h[at] = (1 - z) * candidate + z * before[at];
      }
    }
  }

 private:
  const RecurrentSetting& s_;
  std::span<const Array> in_;
  std::size_t first_;
};

// The result of combine() for y, h and c, by plain loops.
Array reference(const RecurrentSetting& s, std::span<const Array> in) {
  const std::int64_t wide = s.directions * s.hidden;
  const bool lstm = s.cell == RecurrentCell::Lstm;
  const std::size_t states = 1 + static_cast<std::size_t>(s.directions) * s.per_direction();
  Array y(s.read == Read::Last ? Shape{kSamples, wide} : Shape{kSamples, s.steps, wide});
  for (int d = 0; d < s.directions; ++d) {
    const Cell cell(s, in, d);
    for (std::int64_t n = 0; n < kSamples; ++n) {
      std::vector<double> h(static_cast<std::size_t>(s.hidden)), c = h;
      for (std::size_t j = 0; s.initial && j < h.size(); ++j) {
        const std::int64_t at = n * wide + d * s.hidden + static_cast<std::int64_t>(j);
        h[j] = in[states][at];
        if (lstm) c[j] = in[states + 1][at];
      }
      for (std::int64_t k = 0; k < s.steps; ++k) {
        const std::int64_t t = d == 0 ? k : s.steps - 1 - k;
        cell.step(n, t, h, c);
        for (std::size_t j = 0; s.read != Read::Last && j < h.size(); ++j)
          y[(n * s.steps + t) * wide + d * s.hidden + static_cast<std::int64_t>(j)] = h[j];
      }
      for (std::size_t j = 0; j < h.size(); ++j) {
        const double last = lstm ? 2 * h[j] - c[j] : 2 * h[j];
        const std::int64_t column = d * s.hidden + static_cast<std::int64_t>(j);
        if (s.read == Read::Last) y[n * wide + column] = last;
        for (std::int64_t t = 0; s.read == Read::All && t < s.steps; ++t) y[(n * s.steps + t) * wide + column] += last;
      }
    }
  }
  return y;
}

Value combine(const RecurrentSetting& s, const RecurrentOutputs& out) {
  if (s.read == Read::Sequence) return out.y;
  const Value last = s.cell == RecurrentCell::Lstm ? 2.0 * out.h - out.c : 2.0 * out.h;
  return s.read == Read::Last ? last : out.y + reshape(last, {kSamples, 1, s.directions * s.hidden});
}

Value trace(const RecurrentSetting& s, std::span<const Value> v) {
  std::vector<RecurrentWeights> weights;
  for (std::size_t k = 1; weights.size() < static_cast<std::size_t>(s.directions); k += s.per_direction())
    weights.push_back({v[k], v[k + 1], s.bias ? v[k + 2] : Value(), s.bias ? v[k + 3] : Value()});
  const std::size_t states = 1 + weights.size() * s.per_direction();
  const Value h = s.initial ? v[states] : Value();
  if (s.cell == RecurrentCell::Gru) return combine(s, gru(v[0], weights, h));
  return combine(s, lstm(v[0], weights, h, s.initial ? v[states + 1] : Value()));
}

Row row(std::string config, RecurrentSetting s) {
  std::vector<Operand> operands{{Shape{kSamples, s.steps, kFeatures}}};
  for (int d = 0; d < s.directions; ++d) {
    operands.push_back({Shape{s.gates(), kFeatures}});
    operands.push_back({Shape{s.gates(), s.hidden}});
    for (int b = 0; s.bias && b < 2; ++b) operands.push_back({Shape{s.gates()}});
  }
  const int states = !s.initial ? 0 : s.cell == RecurrentCell::Lstm ? 2 : 1;
  for (int k = 0; k < states; ++k) operands.push_back({Shape{kSamples, s.directions * s.hidden}});
  return {.op = s.cell == RecurrentCell::Lstm ? "lstm" : "gru",
          .config = std::move(config),
          .operands = std::move(operands),
          .trace = [s](auto v) { return trace(s, v); },
          .reference = [s](auto in) { return reference(s, in); }};
}

}  // namespace

std::vector<Row> recurrent_rows() {
  std::vector<Row> rows;
  for (const RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::Gru}) {
    rows.push_back(row("sequence", {.cell = cell}));
    rows.push_back(row("no_bias", {.cell = cell, .bias = false}));
    rows.push_back(row("last_state", {.cell = cell, .read = Read::Last}));
    rows.push_back(row("initial_state", {.cell = cell, .initial = true, .read = Read::All}));
    rows.push_back(row("both_directions", {.cell = cell, .directions = 2, .read = Read::All}));
    rows.push_back(row("both_directions_with_initial_state",
                       {.cell = cell, .steps = 3, .hidden = 2, .directions = 2, .initial = true, .read = Read::All}));
    rows.push_back(row("one_step_of_one_feature", {.cell = cell, .steps = 1, .hidden = 1}));
    // More hidden features than a panel of the product has columns.
    rows.push_back(row("wide", {.cell = cell, .steps = 2, .hidden = 35, .bias = false, .read = Read::All}));
  }
  return rows;
}

}  // namespace lockstep::optest
