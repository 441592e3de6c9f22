// Kernels that want blocked layouts: the plan reorders, keeps padding at zero, and gives parameters and their gradients
// a persistent form of that layout, all without changing a value.
#include <algorithm>
#include <cmath>
#include <optional>

#include "lockstep/kernels/registry.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "tests/plan/support.h"

namespace lockstep {
namespace {

// y = 2 x, computed on channels in blocks of eight; its gradient is the same op.
class DoubleInBlocksOp : public Op {
 public:
  std::string_view name() const override { return "test_double_in_blocks"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  std::vector<Value> gradient(const Request& r) const override {
    return {apply_op(std::make_shared<DoubleInBlocksOp>(), {r.gradients[0]})};
  }
};

Value double_in_blocks(Value x) { return apply_op(std::make_shared<DoubleInBlocksOp>(), {x}); }

void register_double_in_blocks() {
  static const bool once = [] {
    kernels::kernel_registry().add(
        "test", "test_double_in_blocks", [](const kernels::KernelRequest& r, std::span<const Layout>) {
          const Layout blocked = Layout::channels_blocked(r.inputs[0].shape, 8);
          kernels::KernelOffer offer{.implementation = "blocks", .inputs = {blocked}, .outputs = {blocked}};
          const std::int64_t n = blocked.storage_elements(r.inputs[0].shape);
          offer.build = [n, shape = r.inputs[0].shape, blocked] {
            return kernels::make_kernel([=](const kernels::Arguments& a) {
              double in_padding = 0;
              for (std::int64_t i = 0; i < n; ++i) in_padding += (a.out<double>(0)[i] = 2 * a.in<double>(0)[i]);
              std::vector<double> logical(static_cast<std::size_t>(shape.elements()));
              reorder(shape, DType::F64, blocked, a.outputs[0], {}, logical.data());
              for (double v : logical) in_padding -= v;
              check(std::abs(in_padding) < 1e-9, "test", "padding of an input holds {}", in_padding);
            });
          };
          return std::optional(std::move(offer));
        });
    return true;
  }();
  (void)once;
}

struct Results {
  std::vector<double> loss, prediction, input_gradient, weight_gradient;
};

// `twice` doubles its argument, in blocks or plainly.
Results results_of(Value (*twice)(Value), bool check_layouts) {
  Parameters parameters;
  const Parameter &x = parameters.add("x", {3, 5, 4, 2}), &w = parameters.add("w", {3, 5, 4, 2}),
                  &gamma = parameters.add("gamma", {5}), &beta = parameters.add("beta", {5});
  const auto function = [&](const plan::Inputs& in) {
    Graph& g = in.graph();
    Value y = twice(g.parameter(x)) + twice(g.parameter(w));
    y = batch_norm2d(relu(y), g.parameter(gamma), g.parameter(beta), 1e-3).y;
    y = twice(sigmoid(y) + g.parameter(x));                         // sigmoid would make padding 0.5
    y = reshape(reshape(y, {3, 40}), {3, 5, 4, 2}) * exp(0.1 * y);  // a view needs plain memory
    return plan::Traced{.loss = mean(square(twice(y) - in["c"])), .prediction = twice(y)};
  };
  plan::CompiledModel model(parameters.named(), function, {.dtype = DType::F64, .seed = 8});
  plan::Plan& plan = model.plan(Mode::Train, {{"c", {Shape{3, 5, 4, 2}, DType::F64}}});
  for (const bool accumulate : {false, true, false}) {
    fill_input<double>(plan, "c");
    plan.run({.slot = 0, .accumulate = accumulate});
  }
  if (check_layouts) {
    EXPECT_EQ(model.parameters().layout(&w).channel_block(w.shape), 8);
    const auto is_reorder = [](const plan::PlanStep& step) { return step.op->name() == "reorder"; };
    EXPECT_TRUE(std::ranges::any_of(plan.steps(), is_reorder));
    for (const plan::PlanStep& step : plan.steps())
      EXPECT_TRUE(!is_reorder(step) || !step.reason.empty()) << plan.describe();
    for (const char* reason : {"because test_double_in_blocks (blocks) reads input 0 as f64 aBcd8b",
                               "because reshape is a view, of plain memory"})
      EXPECT_NE(plan.describe().find(reason), std::string::npos) << plan.describe();
    const auto* gradient = static_cast<const double*>(model.parameters().gradient(&w, 0));
    const auto logical = values_of(model.parameters().read_gradient("w"));
    EXPECT_EQ(std::count(gradient, gradient + 3 * 8 * 8, 0.0), std::ranges::count(logical, 0.0) + 3 * 3 * 8)
        << "its padding is zero";
  }
  return {{plan.loss()},
          values_of(plan.prediction()),
          values_of(model.parameters().read_gradient("x")),
          values_of(model.parameters().read_gradient("w"))};
}

TEST(Layouts, ChangeNoValue) {
  register_double_in_blocks();
  const Results blocked = results_of(double_in_blocks, true);
  const Results plain = results_of([](Value x) { return scale_shift(x, 2); }, false);
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i])));
  };
  expect_near(blocked.loss, plain.loss);
  expect_near(blocked.prediction, plain.prediction);
  expect_near(blocked.input_gradient, plain.input_gradient);
  expect_near(blocked.weight_gradient, plain.weight_gradient);
}

// y = x, read and written as plain memory, with so many FLOPs; no gradient.
class ReadPlainOp : public Op {
 public:
  explicit ReadPlainOp(double flops) : flops_(flops) {}
  std::string_view name() const override { return "test_read_plain"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  std::vector<Value> gradient(const Request&) const override { return {Value()}; }
  double flops(std::span<const Type>, std::span<const Type>) const override { return flops_; }

 private:
  double flops_;
};

void register_read_plain() {
  static const bool once = [] {
    kernels::kernel_registry().add(
        "test", "test_read_plain", [](const kernels::KernelRequest& r, std::span<const Layout>) {
          kernels::KernelOffer offer{.implementation = "plain", .inputs = {{}}, .outputs = {{}}};
          const std::int64_t n = r.inputs[0].shape.elements();
          offer.build = [n] {
            return kernels::make_kernel(
                [=](const kernels::Arguments& a) { std::copy_n(a.in<double>(0), n, a.out<double>(0)); });
          };
          return std::optional(std::move(offer));
        });
    return true;
  }();
  (void)once;
}

// A model whose weights lie in blocks, as their gradient does, and are read plainly by an op with so many FLOPs for
// each of its samples, of which there are two.
struct PlainReader {
  PlainReader(const Shape& shape, double flops, Mode mode = Mode::Train, bool trainable = true) {
    Parameter& w = parameters.add("w", shape);
    w.trainable = trainable;
    // The model keeps the function, which outlives this constructor's arguments.
    const auto function = [&w, flops](const plan::Inputs& in) {
      const Value weights = in.graph().parameter(w);
      const auto samples = static_cast<double>(in["x"].shape()[0]);
      const Value read = apply_op(std::make_shared<ReadPlainOp>(samples * flops), {weights});
      const Value loss = mean(square(double_in_blocks(weights) + read)) * mean(in["x"]);
      return plan::Traced{.loss = loss, .prediction = read};
    };
    model.emplace(parameters.named(), function, plan::ParameterStoreOptions{.dtype = DType::F64, .seed = 8});
    compile(2, Mode::Train);
    compile(2, mode);
  }
  void compile(std::int64_t samples, Mode mode) { plan = &model->plan(mode, {{"x", {Shape{samples}, DType::F64}}}); }
  // Of the steps that reorder the weights, the number that each run computes.
  std::int64_t turned() const {
    return std::ranges::count_if(plan->steps(), [](const plan::PlanStep& s) {
      return s.op->name() == "reorder" && !s.constant && s.reason.find("test_read_plain") != std::string::npos;
    });
  }

  Parameters parameters;
  std::optional<plan::CompiledModel> model;
  plan::Plan* plan = nullptr;
};

TEST(Layouts, LargeWeightsAreTurnedInEachStepWhereThatTakesLittleOfIt) {
  register_double_in_blocks();
  register_read_plain();
  const Shape large{64, 16, 8, 8}, small{63, 16, 8, 8};  // 512 KiB, and less
  const double bytes = 8.0 * 64 * 16 * 8 * 8;
  PlainReader turned(large, 96 * bytes), kept(large, 95 * bytes);
  EXPECT_EQ(turned.turned(), 1) << turned.plan->describe();
  EXPECT_EQ(kept.turned(), 0) << kept.plan->describe();
  EXPECT_EQ(PlainReader(small, 1e12).turned(), 0);
  EXPECT_EQ(PlainReader(large, 1e12, Mode::Eval).turned(), 0) << "weights do not change there";
  EXPECT_EQ(PlainReader(large, 1e12, Mode::Train, false).turned(), 0) << "nor where they are frozen";
  EXPECT_EQ(static_cast<double>(kept.model->parameters().bytes() - turned.model->parameters().bytes()), bytes);
  for (const double factor : {1.0, -3.0}) {  // after a change of the weights, too
    std::vector<std::vector<double>> read, gradients;
    for (PlainReader* r : {&turned, &kept}) {
      plan::ParameterStore& store = r->model->parameters();
      Tensor w = store.read("w");
      for (std::int64_t i = 0; i < w.shape().elements(); ++i) w.data<double>()[i] *= factor;
      store.write("w", w);
      store.refresh();
      fill_input<double>(*r->plan, "x");
      r->plan->run({.slot = 0, .accumulate = false});
      read.push_back(values_of(r->plan->prediction()));
      EXPECT_EQ(read.back(), values_of(w));
      gradients.push_back(values_of(store.read_gradient("w")));
    }
    EXPECT_EQ(gradients[0], gradients[1]);
  }
}

// A short batch, which is below the limit, must not bring the copy back; nor must a long one make a kept copy useless.
TEST(Layouts, LaterPlansTurnWeightsAsTheFirstOneDid) {
  register_double_in_blocks();
  register_read_plain();
  const Shape large{64, 16, 8, 8};
  const double bytes = 8.0 * 64 * 16 * 8 * 8;
  PlainReader turned(large, 96 * bytes), kept(large, 95 * bytes);
  const std::size_t before = turned.model->parameters().bytes();
  turned.compile(1, Mode::Train);
  kept.compile(3, Mode::Train);
  EXPECT_EQ(turned.turned(), 1) << turned.plan->describe();
  EXPECT_EQ(kept.turned(), 0) << kept.plan->describe();
  EXPECT_EQ(turned.model->parameters().bytes(), before);
  EXPECT_FALSE(turned.model->parameters().own_copies_stale());
}

}  // namespace
}  // namespace lockstep
