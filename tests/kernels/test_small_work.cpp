// Small nodes run on the thread that calls them, so their bits do not depend on how many there are, and OpenMP's
// settings are afterwards what they were.
#include <gtest/gtest.h>
#include <omp.h>

#include <filesystem>
#include <iterator>
#include <thread>

#include "lockstep/ops/convolution.h"
#include "lockstep/ops/linear.h"
#include "tests/kernels/sweep.h"

namespace lockstep {
namespace {

const Conv2dOptions kPadded{.padding_h = 1, .padding_w = 1};

struct Ran {
  std::vector<sweep::Made> made;  // by offer
  std::ptrdiff_t started = 0;     // threads
  int allowed = 0;                // threads, afterwards
};

std::ptrdiff_t threads_of_process() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// All of oneDNN's offers, on a thread of its own that may use `threads`: what it starts is then not there already.
Ran run_with(int threads, const Op& op, const std::vector<Tensor>& inputs, const std::vector<DType>& types) {
  kernels::KernelRegistry registry;
  kernels::register_onednn_kernels(registry);
  kernels::KernelRequest request{.op = &op, .inputs = {}, .outputs = {}, .path = "test"};
  for (std::size_t i = 0; i < inputs.size(); ++i) request.inputs.push_back({inputs[i].shape(), types[i]});
  request.outputs = op.infer("test", request.inputs);
  const std::vector<Layout> offered(inputs.size());
  Ran ran;
  std::thread([&] {
    omp_set_num_threads(threads);
    const std::ptrdiff_t before = threads_of_process();
    for (const kernels::KernelOffer& offer : registry.offers(request, offered))
      ran.made.push_back(sweep::run_offer(request, offer, inputs));
    ran.started = threads_of_process() - before;
    ran.allowed = omp_get_max_threads();
  }).join();
  return ran;
}

// Adds the number of oneDNN's offers to `offers`.
void expect_serial(const Op& op, const std::vector<Tensor>& inputs, const std::vector<DType>& types,
                   std::size_t& offers) {
  const Ran alone = run_with(1, op, inputs, types), together = run_with(3, op, inputs, types);
  EXPECT_EQ(together.started, 0);
  EXPECT_EQ(together.allowed, 3);
#if defined(__x86_64__)  // elsewhere oneDNN lacks kernels of some ops, in bf16 of all
  ASSERT_GT(alone.made.size(), 0U);
#endif
  offers += alone.made.size();
  ASSERT_EQ(together.made.size(), alone.made.size());
  for (std::size_t i = 0; i < alone.made.size(); ++i) {
    EXPECT_EQ(together.made[i].implementation, alone.made[i].implementation);
    for (std::size_t o = 0; o < alone.made[i].outputs.size(); ++o) {
      const std::span<const double> mine = together.made[i].outputs[o].data<double>();
      const std::span<const double> theirs = alone.made[i].outputs[o].data<double>();
      for (std::size_t e = 0; e < mine.size(); ++e) ASSERT_EQ(mine[e], theirs[e]) << alone.made[i].implementation;
    }
  }
}

TEST(SmallWork, RunsOnOneThread) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  std::size_t offers = 0;
  for (const DType dtype : {DType::F32, DType::BF16}) {
    SCOPED_TRACE(name_of(dtype));
    const Tensor image = sweep::random_values({4, 16, 6, 6}, 1), filters = sweep::random_values({16, 16, 3, 3}, 2);
    const Tensor rows = sweep::random_values({24, 60}, 3), other_rows = sweep::random_values({24, 40}, 4);
    const std::vector<DType> weighted{dtype, DType::F32}, activations{dtype, dtype};
    expect_serial(ConvolutionOp(kPadded), sweep::list(image.clone(), filters.clone()), weighted, offers);
    expect_serial(ConvolutionBackwardDataOp(kPadded, image.shape()), sweep::list(image.clone(), filters.clone()),
                  weighted, offers);
    expect_serial(ConvolutionBackwardWeightsOp(kPadded, filters.shape(), false),
                  sweep::list(image.clone(), image.clone()), activations, offers);
    expect_serial(LinearOp(), sweep::list(rows.clone(), sweep::random_values({40, 60}, 5)), weighted, offers);
    expect_serial(LinearBackwardWeightsOp(true), sweep::list(rows.clone(), other_rows.clone()), activations, offers);
    expect_serial(MatmulOp(true, false), sweep::list(rows.clone(), other_rows.clone()), activations, offers);
  }
  EXPECT_GT(offers, 0U);
}

// Or the test above sees nothing.
TEST(SmallWork, LargeWorkTakesAllThreads) {
  if (!kernels::has_onednn()) GTEST_SKIP() << "built without oneDNN";
  const Ran ran =
      run_with(3, ConvolutionOp(kPadded),
               sweep::list(sweep::random_values({6, 16, 32, 32}, 1), sweep::random_values({16, 16, 3, 3}, 2)),
               {DType::F32, DType::F32});
  EXPECT_EQ(ran.started, 2);
}

}  // namespace
}  // namespace lockstep
