// The bits of a recurrent layer: those of a sample depend neither on threads nor on the other samples, and the gates
// may lie where the products of the input lay, and the gradients of these where the gates lay.
#include "lockstep/kernels/generic/recurrent.h"

#include <gtest/gtest.h>

#include "tests/kernels/reference.h"

namespace lockstep::generic {
namespace {

using kernels::generic::RecurrentBackward;
using kernels::generic::RecurrentForward;
using kernels::generic::RecurrentShape;

// Rows (a, b, ...) as (b, a, ...), by their first two axes.
std::vector<float> exchanged(const std::vector<float>& rows, std::int64_t a, std::int64_t b) {
  if (rows.empty()) return rows;
  const auto width = static_cast<std::int64_t>(rows.size()) / (a * b);
  std::vector<float> result(rows.size());
  for (std::int64_t i = 0; i < a * b; ++i)
    std::copy_n(rows.data() + i * width, width, result.data() + (i % b * a + i / b) * width);
  return result;
}

// A layer of two directions with initial states on random values, those of a sample whatever others there are.
struct Layer {
  RecurrentShape shape;
  std::vector<float> product[2], weight[2], bias[2], state[2], dy;
  std::vector<float> gates[2], y, last[2], kept, by_product[2], by_hidden[2], previous[2], by_state[2];

  Layer(RecurrentCell cell, std::int64_t samples)
      : shape{.options = {.cell = cell, .directions = 2, .bias = cell == RecurrentCell::Gru, .initial = true},
              .samples = samples,
              .steps = 5,
              .hidden = 37} {
    const std::int64_t rows = samples * shape.steps;
    for (int d = 0; d < 2; ++d) {
      const auto seed = static_cast<std::uint64_t>(10 * d);
      product[d] = exchanged(random_values<float>(rows * shape.gates(), seed + 1), samples, shape.steps);
      weight[d] = random_values<float>(shape.gates() * shape.hidden, seed + 2);
      bias[d] = random_values<float>(shape.gates(), seed + 3);
      state[d] = random_values<float>(samples * shape.wide(), seed + 4);
      gates[d] = by_product[d] = by_hidden[d] = blank(rows * shape.gates());
      previous[d] = blank(rows * shape.hidden);
      last[d] = by_state[d] = blank(samples * shape.wide());
    }
    dy = exchanged(random_values<float>(rows * shape.wide(), 5), samples, shape.steps);
    y = kept = blank(rows * shape.wide());
  }
  static std::vector<float> blank(std::int64_t n) { return std::vector<float>(static_cast<std::size_t>(n), 1e30F); }
  bool lstm() const { return shape.options.lstm(); }

  void forward(bool in_place) {
    RecurrentForward<float> a{};
    for (int d = 0; d < 2; ++d) {
      if (in_place) gates[d] = product[d];
      a.direction[d] = {.product = in_place ? gates[d].data() : product[d].data(),
                        .weight = weight[d].data(),
                        .bias = shape.options.bias ? bias[d].data() : nullptr,
                        .gates = gates[d].data()};
    }
    a.initial_h = state[0].data();
    a.initial_c = lstm() ? state[1].data() : nullptr;
    a.y = y.data();
    a.h = last[0].data();
    a.c = lstm() ? last[1].data() : nullptr;
    a.kept = kept.data();
    std::vector<float> scratch = blank(recurrent_forward_scratch(shape) + 1);
    recurrent_forward(shape, a, scratch.data());
    EXPECT_EQ(scratch.back(), 1e30F) << "wrote behind its scratch memory";
  }
  void backward(bool in_place) {
    RecurrentBackward<float> a{};
    for (int d = 0; d < 2; ++d) {
      if (in_place) by_product[d] = gates[d];
      a.direction[d] = {.weight = weight[d].data(),
                        .gates = in_place ? by_product[d].data() : gates[d].data(),
                        .by_product = by_product[d].data(),
                        .by_hidden = lstm() ? by_product[d].data() : by_hidden[d].data(),
                        .before = previous[d].data()};
    }
    a.y = y.data();
    a.kept = kept.data();
    a.initial_h = state[0].data();
    a.initial_c = lstm() ? state[1].data() : nullptr;
    a.dy = dy.data();
    a.by_initial_h = by_state[0].data();
    a.by_initial_c = lstm() ? by_state[1].data() : nullptr;
    std::vector<float> scratch = blank(recurrent_backward_scratch(shape) + 1);
    recurrent_backward(shape, a, scratch.data());
    EXPECT_EQ(scratch.back(), 1e30F) << "wrote behind its scratch memory";
  }
  // One sample's after the other's.
  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all{last[0], last[1], by_state[0], by_state[1]};
    for (const auto* steps : {&y, &kept, &gates[0], &gates[1], &by_product[0], &by_product[1], &by_hidden[0],
                              &by_hidden[1], &previous[0], &previous[1]})
      all.push_back(exchanged(*steps, shape.steps, shape.samples));
    return all;
  }
};

// Whether the results of the first samples are the same.
void expect_same(const Layer& got, const Layer& want) {
  const auto a = got.results(), b = want.results();
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::size_t n = std::min(a[i].size(), b[i].size());
    EXPECT_TRUE(std::equal(a[i].begin(), a[i].begin() + static_cast<std::ptrdiff_t>(n), b[i].begin()))
        << "result " << i;
  }
}

Layer run(RecurrentCell cell, std::int64_t samples, bool in_place = false) {
  Layer layer(cell, samples);
  layer.forward(in_place);
  layer.backward(in_place);
  return layer;
}

TEST(Recurrent, BitsOfASampleDependOnItAlone) {
  for (const RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::Gru}) {
    const Layer all = run(cell, 19);
    for (const std::int64_t samples : {1, 3, 17}) expect_same(run(cell, samples), all);
  }
}

TEST(Recurrent, BitsDoNotDependOnThreads) {
  const auto with = [](int threads, RecurrentCell cell) {
    const Threads scope(threads);
    return run(cell, 23);
  };
  for (const RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::Gru}) {
    for (const int threads : {2, 3, 5}) expect_same(with(threads, cell), with(1, cell));
  }
}

TEST(Recurrent, GatesMayTakeThePlaceOfTheProductsAndGradientsThatOfTheGates) {
  for (const RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::Gru})
    expect_same(run(cell, 7, true), run(cell, 7));
}

TEST(Recurrent, NoSamples) {
  for (const RecurrentCell cell : {RecurrentCell::Lstm, RecurrentCell::Gru}) run(cell, 0);
}

}  // namespace
}  // namespace lockstep::generic
