// The passes that join nodes, on small graphs: what becomes one node and what stays.
#include "lockstep/plan/fusion.h"

#include <algorithm>

#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/plan/value_uses.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

const Type kMatrix{Shape{4, 3}, DType::F32};

// The formulas of the pointwise nodes that are left of a graph which returns `trace(x, y)`.
template <class Trace>
std::vector<std::string> left_of(const Trace& trace) {
  Graph graph(Mode::Eval, DType::F32);
  plan::Traced traced;
  traced.prediction = trace(graph.input("x", kMatrix), graph.input("y", kMatrix));
  std::vector<plan::ParameterGradient> gradients;
  int forward_nodes = static_cast<int>(graph.nodes().size());
  const auto fused = plan::fuse_pointwise(graph, {traced, gradients, forward_nodes});
  EXPECT_EQ(forward_nodes, static_cast<int>(fused->nodes().size()));
  EXPECT_EQ(traced.prediction.type(), kMatrix);
  std::vector<std::string> formulas;
  for (const Node& node : fused->nodes()) {
    if (node.op && node.op->name() == "pointwise") formulas.push_back(node.op->attributes());
  }
  return formulas;
}

using Formulas = std::vector<std::string>;

TEST(PointwiseFusion, JoinsWhatOneNodeReads) {
  EXPECT_EQ(left_of([](Value x, Value y) { return tanh(x * y) + 0.5; }), (Formulas{"add(tanh(multiply(a, b)), 0.5)"}));
  EXPECT_EQ(left_of([](Value x, Value) {
              const Value e = exp(x);
              return e * e;
            }),
            (Formulas{"multiply(exp(a), exp(a))"}));
  EXPECT_EQ(left_of([](Value x, Value y) { return relu(x) - relu(y); }), (Formulas{"subtract(relu(a), relu(b))"}));
}

TEST(PointwiseFusion, LeavesWhatOthersRead) {
  EXPECT_EQ(left_of([](Value x, Value y) {
              const Value e = exp(x);
              return sum(e) * (e + y);
            }),
            (Formulas{"exp", "multiply(a, add(b, c))"}));
  EXPECT_EQ(left_of([](Value x, Value y) { return observe("e", exp(x)) + y; }), (Formulas{"exp", "add"}));
}

TEST(PointwiseFusion, JoinsNoOtherShapeAndNoOtherBlock) {
  EXPECT_EQ(left_of([](Value x, Value y) { return x + exp(sum_to(y, Shape{3})); }), (Formulas{"exp", "add"}));
  EXPECT_EQ(left_of([](Value x, Value y) {
              Value e;
              {
                const Graph::Block block(x.graph());
                e = exp(x);
              }
              return e + y;
            }),
            (Formulas{"exp", "add"}));
}

TEST(PointwiseFusion, StopsWhereRegistersEnd) {
  const Formulas formulas = left_of([](Value x, Value y) {
    Value z = x;
    for (int i = 0; i < 40; ++i) z = tanh(z * y) + (0.125 * i + 1);  // forty constants
    return z;
  });
  EXPECT_GT(formulas.size(), 1U);
  EXPECT_LT(formulas.size(), 20U);
}

TEST(PointwiseFusion, DropsWhatNothingReads) {
  EXPECT_EQ(left_of([](Value x, Value y) {
              (void)exp(y);
              return tanh(x);
            }),
            (Formulas{"tanh"}));
}

TEST(ValueUses, CountLiveReadersAlone) {
  Graph graph(Mode::Eval, DType::F32);
  const Value x = graph.input("x", kMatrix), y = exp(x), z = y * y;
  (void)tanh(y);  // dead
  const plan::Traced traced{.prediction = z};
  const plan::ValueUses uses(graph, traced, {});
  EXPECT_EQ(uses.readers(y).size(), 2U);
  EXPECT_FALSE(uses.read_once(y));
  EXPECT_TRUE(uses.read_by(y, z.node()));
  EXPECT_TRUE(uses.read_once(x));
  EXPECT_TRUE(uses.kept(z));
  EXPECT_FALSE(uses.live(graph.nodes().size() - 1));
}

// The gradient's nodes stay behind those of the forward part.
TEST(PointwiseFusion, KeepsForwardAndBackwardApart) {
  Parameters parameters;
  Parameter& w = parameters.add("w", {4, 3});
  Graph graph(Mode::Train, DType::F32);
  plan::Traced traced;
  traced.loss = mean(square(tanh(graph.parameter(w) * graph.input("x", kMatrix))));
  int forward_nodes = static_cast<int>(graph.nodes().size());
  std::vector<plan::ParameterGradient> gradients = plan::append_gradient(graph, traced.loss, 4);
  const auto fused = plan::fuse_pointwise(graph, {traced, gradients, forward_nodes});
  const auto is_pointwise = [](const Node& node) { return node.op && node.op->name() == "pointwise"; };
  const auto nodes = std::span(fused->nodes());
  const auto forward = nodes.first(static_cast<std::size_t>(forward_nodes));
  EXPECT_EQ(std::ranges::count_if(forward, is_pointwise), 2) << "tanh, which backward reads, and its square";
  EXPECT_EQ(std::ranges::count_if(nodes, is_pointwise), 3) << "and the gradient";
  EXPECT_GE(gradients[0].value.node(), forward_nodes);
}

}  // namespace
}  // namespace lockstep
