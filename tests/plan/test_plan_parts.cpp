// The parts that a plan is composed of, each by itself.
#include "lockstep/nn/layers.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/plan/describe.h"
#include "lockstep/plan/gradient.h"
#include "lockstep/plan/parameter_uses.h"
#include "lockstep/plan/plan_memory.h"
#include "lockstep/plan/plan_outputs.h"
#include "lockstep/plan/plan_pointers.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

// Two linear layers in training, assembled: backward finishes the second layer first.
struct Parts {
  nn::Linear first{{.in = 3, .out = 4, .bias = false}}, second{{.in = 4, .out = 2, .bias = false}};
  plan::ParameterStore store{{{"first", weight(first)}, {"second", weight(second)}},
                             {.gradient_slots = 2, .bucket_bytes = 32}};
  plan::Arena arena;
  Graph graph{Mode::Train, DType::F32};
  plan::Traced traced;
  std::vector<plan::ParameterGradient> gradients;

  static Parameter* weight(nn::Linear& layer) { return layer.named_parameters().at(0).parameter; }
  Parts() {
    const Value y = second(first(graph.input("x", {Shape{5, 3}, DType::F32})));
    graph.observe("y", y);
    traced.loss = sum(y);
    gradients = plan::append_gradient(graph, traced.loss, 5);
  }
  plan::Assembly assembled(const plan::PlanOutputs& outputs) {
    const auto plain = [](const Parameter*) { return Layout{}; };
    std::vector<const Parameter*> order;
    for (const plan::ParameterGradient& g : gradients) order.push_back(g.parameter);
    if (!store.allocated()) store.allocate({}, order);
    return plan::assemble({graph, outputs.values(), gradients, plain});
  }
};

TEST(PlanParts, OutputsAreIndicesOfWhatIsKept) {
  Parts parts;
  const plan::PlanOutputs outputs(parts.graph, parts.traced);
  EXPECT_EQ(outputs.values().size(), 2U);
  EXPECT_EQ(outputs.loss(), 0);
  EXPECT_EQ(outputs.weight(), -1);
  EXPECT_EQ(outputs.prediction(), -1);
  EXPECT_EQ(outputs.observed("y"), 1);
  EXPECT_EQ(outputs.observed_names(), std::vector<std::string>{"y"});
  expect_error([&] { (void)outputs.observed("z"); }, "'z' is not observed");
}

TEST(PlanParts, ParametersRetireAfterTheirGradientAndTheirLastRead) {
  Parts parts;
  const plan::Assembly assembly = parts.assembled(plan::PlanOutputs(parts.graph, parts.traced));
  const plan::ParameterUses uses(assembly, parts.store);
  std::vector<int> needed;
  std::vector<const Parameter*> retired;
  for (std::size_t s = 0; s < assembly.steps.size(); ++s) {
    needed.insert(needed.end(), uses.needs(s).begin(), uses.needs(s).end());
    retired.insert(retired.end(), uses.retired(s).begin(), uses.retired(s).end());
  }
  EXPECT_EQ(needed, (std::vector<int>{1, 0})) << "forward reads the first layer first, whose bucket fills last";
  EXPECT_EQ(retired, (std::vector<const Parameter*>{Parts::weight(parts.second), Parts::weight(parts.first)}));
}

TEST(PlanParts, GradientPointersFollowTheTarget) {
  Parts parts;
  plan::Assembly assembly = parts.assembled(plan::PlanOutputs(parts.graph, parts.traced));
  std::vector<std::unique_ptr<kernels::Kernel>> kernels;
  for (plan::PlanStep& step : assembly.steps) kernels.push_back(step.offer.build());
  plan::PlanMemory memory(assembly, kernels, parts.store, parts.arena);
  EXPECT_GE(parts.arena.bytes(), memory.arena_bytes());
  plan::PlanPointers pointers;
  pointers.bind(assembly, memory);
  for (std::size_t s = 0; s < assembly.steps.size(); ++s) {
    for (const int sink : assembly.steps[s].sinks) {
      const auto& outputs = assembly.steps[s].outputs;
      const auto k = static_cast<std::size_t>(std::ranges::find(outputs, sink) - outputs.begin());
      const Parameter* parameter = assembly.buffers[static_cast<std::size_t>(sink)].parameter;
      for (const int slot : {0, 1}) {
        pointers.aim({.slot = slot}, memory);
        EXPECT_EQ(pointers.arguments(s).outputs[k], parts.store.gradient(parameter, slot));
      }
      pointers.aim({.slot = 0, .accumulate = true}, memory);
      EXPECT_NE(pointers.arguments(s).outputs[k], parts.store.gradient(parameter, 0)) << "scratch memory, then added";
    }
  }
}

TEST(PlanParts, OperationsNameNoReorder) {
  Parts parts;
  const plan::Assembly assembly = parts.assembled(plan::PlanOutputs(parts.graph, parts.traced));
  EXPECT_NE(operations(assembly).find("linear"), std::string::npos);
  EXPECT_EQ(operations(assembly).find("reorder"), std::string::npos);
  EXPECT_GT(plan::flops_of(assembly), 2 * 5 * (3 * 4 + 4 * 2));
  EXPECT_NE(describe(assembly, 1 << 20, 0).find("arena 1.0 MiB"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
