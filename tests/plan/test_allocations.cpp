// Running a plan allocates nothing: counted by this executable's own operator new.
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/conv2d.h"
#include "lockstep/ops/cross_entropy.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/pool2d.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/support.h"

namespace {
std::atomic<std::int64_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
// Every form: sanitizers replace those that are not, and then see new and free of different kinds.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace lockstep {
namespace {

class Network {
 public:
  Network()
      : filter_(parameters_.add("conv", {8, 3, 3, 3})),
        gamma_(parameters_.add("gamma", {8}, Role::Norm)),
        beta_(parameters_.add("beta", {8}, Role::Norm)),
        weight_(parameters_.add("weight", {5, 8})),
        bias_(parameters_.add("bias", {5}, Role::Bias)) {}

  Traced trace(const Inputs& in) const {
    Graph& g = in.graph();
    Value x = conv2d(in["image"], g.parameter(filter_), {}, {.padding_h = 1, .padding_w = 1});
    x = relu(batch_norm2d(x, g.parameter(gamma_), g.parameter(beta_), 1e-5).y);
    x = dropout(x + x, 0.2, "dropout");
    x = flatten(global_average_pool2d(max_pool2d(x, {})));
    x = linear(x, g.parameter(weight_), g.parameter(bias_));
    return {.loss = cross_entropy(x, in["target"], {.label_smoothing = 0.1}),
            .counts = {{"correct", count_correct(x, in["target"])}}};
  }
  const Parameters& parameters() const { return parameters_; }

 private:
  Parameters parameters_;
  Parameter &filter_, &gamma_, &beta_, &weight_, &bias_;
};

TEST(Allocations, AreCounted) {
  const std::int64_t before = allocations;
  const auto one = std::make_unique<int>(1);
  EXPECT_EQ(allocations - before, 1);
}

TEST(Allocations, RunningAPlanMakesNone) {
  const Network network;
  CompiledModel model(network.parameters().named(), [&](const Inputs& in) { return network.trace(in); },
                      {.dtype = DType::F64, .gradient_slots = 2});
  Plan& plan =
      model.plan(Mode::Train, {{"image", {Shape{6, 3, 10, 9}, DType::F64}}, {"target", {Shape{6}, DType::I32}}});
  int final_gradients = 0;
  const Plan::GradientHook hook = [&](const Parameter*) { ++final_gradients; };
  const std::string image = "image", target = "target", step = Graph::kStep, ids = Graph::kSampleIds,
                    correct = "correct";
  double checksum = 0;
  const auto run = [&](GradientTarget into) {
    std::fill_n(static_cast<double*>(plan.input(image)), 6 * 3 * 90, 0.5);
    std::fill_n(static_cast<std::int32_t*>(plan.input(target)), 6, 2);
    *static_cast<std::int64_t*>(plan.input(step)) = 3;
    std::fill_n(static_cast<std::int64_t*>(plan.input(ids)), 6, 1);
    plan.run(into, hook);
    checksum += plan.loss() + plan.weight() + plan.count(correct);
  };
  run({.slot = 0});
  run({.slot = 1, .accumulate = true});
  const std::int64_t before = allocations;
  for (int i = 0; i < 5; ++i) {
    run({.slot = 0});
    run({.slot = 1, .accumulate = true});
  }
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(final_gradients, 12 * 5);
  EXPECT_TRUE(std::isfinite(checksum));
}

}  // namespace
}  // namespace lockstep
