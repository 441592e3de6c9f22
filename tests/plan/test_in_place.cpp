// Memory is shared between values that are not alive at once, and steps overwrite their input where nobody reads it
// again: on random graphs neither may change a bit against a plan in which every value keeps memory of its own, nor
// spoil the gradient.
#include <cmath>

#include "lockstep/ops/dropout.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

constexpr std::int64_t kRows = 4, kColumns = 6;
const plan::ParameterStoreOptions kOptions{.dtype = DType::F64, .seed = 2};

class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t key) : key_(key) {
    for (int i = 0; i < 3; ++i) parameters_.add(formatted("p{}", i), {kRows, kColumns});
    parameters_.add("square", {kColumns, kColumns});
  }

  plan::CompiledModel compile(bool observe_all) const {
    return {parameters_.named(), [=, this](const plan::Inputs& in) { return trace(in, observe_all); }, kOptions};
  }
  static plan::Plan& plan_of(plan::CompiledModel& model) {
    return model.plan(Mode::Train, {{"x", {Shape{kRows, kColumns}, DType::F64}}});
  }
  static void run(plan::Plan& plan) {
    if (plan.input("x") != nullptr) fill_input<double>(plan, "x");  // a graph may not read it
    if (void* step = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(step) = 1;
    if (auto* ids = static_cast<std::int64_t*>(plan.input(Graph::kSampleIds))) std::fill_n(ids, kRows, 7);
    plan.run();
  }
  const Parameters& parameters() const { return parameters_; }

 private:
  plan::Traced trace(const plan::Inputs& in, bool observe_all) const {
    Graph& g = in.graph();
    RandomStream random(key_, 3);
    std::vector<Value> values{in["x"]};
    for (std::size_t i = 0; i < 3; ++i) values.push_back(g.parameter(*parameters_.named()[i].parameter));
    const Value square_matrix = g.parameter(*parameters_.named()[3].parameter);
    for (int i = 0; i < 14; ++i) values.push_back(step(values, square_matrix, random, i));
    if (observe_all) {
      for (std::size_t i = 0; i < values.size(); ++i) g.observe(formatted("v{}", i), values[i]);
    }
    Value loss = mean(square(matmul(values.back(), square_matrix)));
    for (std::size_t i = 1; i < 4; ++i) loss = loss + mean(tanh(values[i]));  // so that each parameter has a gradient
    return {.loss = loss, .prediction = values.back()};
  }

  static Value step(const std::vector<Value>& values, Value square_matrix, RandomStream& random, int i) {
    // Mostly the newest values, sometimes old ones: chains with skips.
    const auto pick = [&] {
      const std::uint64_t back =
          random.below(3) == 0 ? random.below(values.size()) : random.below(std::min<std::uint64_t>(values.size(), 3));
      return values[values.size() - 1 - back];
    };
    const Value a = pick(), b = pick();
    switch (random.below(11)) {
      case 0:
        return relu(a);
      case 1:
        return tanh(a);
      case 2:
        return sigmoid(a);
      case 3:
        return tanh(square(a));
      case 4:
        return a + b;
      case 5:
        return a - b;
      case 6:
        return tanh(a) * sigmoid(b);
      case 7:
        return scale_shift(a, 0.5, 0.1);
      case 8:
        return tanh(matmul(a, square_matrix));
      case 9:
        return reshape(relu(reshape(a, {kColumns, kRows})), {kRows, kColumns});
      default:
        return dropout(a, 0.3, formatted("site{}", i));
    }
  }

  std::uint64_t key_;
  Parameters parameters_;
};

TEST(InPlace, ChangesNoBit) {
  std::size_t saved = 0;
  for (std::uint64_t key = 0; key < 300; ++key) {
    const RandomGraph graph(key);
    plan::CompiledModel sharing = graph.compile(false), keeping = graph.compile(true);
    plan::Plan &lean = RandomGraph::plan_of(sharing), &full = RandomGraph::plan_of(keeping);
    saved += full.arena_bytes() - std::min(full.arena_bytes(), lean.arena_bytes());
    RandomGraph::run(lean);
    RandomGraph::run(full);
    ASSERT_EQ(lean.loss(), full.loss()) << "graph " << key;
    ASSERT_EQ(values_of(lean.prediction()), values_of(full.prediction())) << "graph " << key;
    for (const auto& [name, p] : graph.parameters().named()) {
      ASSERT_EQ(values_of(sharing.parameters().read_gradient(name)),
                values_of(keeping.parameters().read_gradient(name)))
          << "graph " << key << ", " << name;
    }
  }
  EXPECT_GT(saved, 0u);
}

// Along one random direction in the space of all parameters.
TEST(InPlace, LeavesTheGradientRight) {
  for (std::uint64_t key = 0; key < 100; ++key) {
    const RandomGraph graph(key);
    plan::CompiledModel model = graph.compile(false);
    plan::Plan& plan = RandomGraph::plan_of(model);
    RandomGraph::run(plan);
    std::map<std::string, std::vector<double>> start, direction;
    double slope = 0;
    for (const auto& [name, p] : graph.parameters().named()) {
      start[name] = values_of(model.parameters().read(name));
      RandomStream random(key, hash_name(name));
      for (double g : values_of(model.parameters().read_gradient(name))) {
        direction[name].push_back(random.normal());
        slope += g * direction[name].back();
      }
    }
    const auto loss_at = [&](double distance) {
      for (const auto& [name, p] : graph.parameters().named()) {
        std::vector<double> moved = start[name];
        for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += distance * direction[name][i];
        model.parameters().write(name, Tensor::from<double>(p->shape, moved));
      }
      model.parameters().refresh();
      RandomGraph::run(plan);
      return plan.loss() * kRows;
    };
    const double h = 1e-6, difference = (loss_at(h) - loss_at(-h)) / (2 * h);
    ASSERT_NEAR(slope, difference, 1e-6 * (1 + std::abs(slope))) << "graph " << key;
  }
}

}  // namespace
}  // namespace lockstep
