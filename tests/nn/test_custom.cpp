// What a user adds from outside the library: an op with its own kernel, a loss of the library's ops, and a module,
// trained together.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/kernels/registry.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/parallel/updater.h"
#include "lockstep/plan/compiled_model.h"

namespace lockstep {
namespace {

// softplus(x) = log(1 + exp(beta x)) / beta
class SoftplusOp : public Op {
 public:
  explicit SoftplusOp(double beta) : beta_(beta) {}
  double beta() const { return beta_; }
  std::string_view name() const override { return "user_softplus"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override {
    check(inputs[0].shape.rank() == 2, name(), "{}: input is {}, expected a matrix", place, inputs[0].str());
    return {inputs[0]};
  }
  std::vector<Value> gradient(const Request& r) const override {
    return {r.gradients[0] * sigmoid(beta_ * r.inputs[0])};
  }

 private:
  double beta_;
};

template <class T>
void run_softplus(const KernelRequest& request, const Arguments& a) {
  const auto beta = static_cast<T>(request.as<SoftplusOp>().beta());
  for (std::int64_t i = 0; i < request.outputs[0].shape.elements(); ++i) {
    a.out<T>(0)[i] = std::log1p(std::exp(beta * a.in<T>(0)[i])) / beta;
  }
}

Value softplus(Value x, double beta) {
  static const bool registered = [] {
    register_plain_kernel("user_softplus", [](const KernelRequest& request, const Arguments& a) {
      request.dtype() == DType::F64 ? run_softplus<double>(request, a) : run_softplus<float>(request, a);
    });
    return true;
  }();
  (void)registered;
  return apply_op(std::make_shared<SoftplusOp>(beta), {x});
}

struct Network : nn::Module {
  nn::Linear first{{.in = 3, .out = 8}}, second{{.in = 8, .out = 1}};
  Parameter& scale;
  Network() : scale(add("scale", Parameter{.shape = {}, .initialize = nn::constant(1)})) {
    add("first", first);
    add("second", second);
  }
  Value operator()(Value x) const {
    const Value y = second(softplus(first(x), 2));
    return y * apply_op(std::make_shared<ExpandOp>(y.shape(), 1), {x.graph().parameter(scale)});
  }
};

// log cosh is a loss that the library has not: here by its ops.
Loss log_cosh(Value prediction, Value target) {
  const Value d = prediction - target;
  return mean(log(0.5 * (exp(d) + exp(-d))));
}

template <class T>
std::vector<double> train(int steps) {
  const Network network;
  const auto function = [&](const Inputs& in) { return Traced{.loss = log_cosh(network(in["x"]), in["y"])}; };
  CompiledModel model(network.named_parameters(), function, {.dtype = dtype_of<T>, .seed = 1, .optimizer_states = 2});
  Plan& plan = model.plan(Mode::Train, {{"x", {{16, 3}, dtype_of<T>}}, {"y", {{16, 1}, dtype_of<T>}}});
  Updater updater(model.parameters(), optim::adam({}), {});
  std::vector<double> losses;
  for (int step = 1; step <= steps; ++step) {
    RandomStream random(9, 9);
    auto *x = static_cast<T*>(plan.input("x")), *y = static_cast<T*>(plan.input("y"));
    for (std::int64_t n = 0; n < 16; ++n) {
      for (std::int64_t i = 0; i < 3; ++i) x[n * 3 + i] = static_cast<T>(random.uniform(-1, 1));
      y[n] = x[n * 3] * x[n * 3 + 1] - x[n * 3 + 2];
    }
    plan.run();
    losses.push_back(plan.loss());
    updater.update(0.02, plan.weight(), step);
  }
  return losses;
}

TEST(CustomOp, TrainsTogetherWithACustomLoss) {
  const std::vector<double> losses = train<double>(300);
  EXPECT_GT(losses.front(), 0.05);
  EXPECT_LT(losses.back(), 0.05 * losses.front());
}

TEST(CustomOp, TakesTheSameStepsInF32AndF64) {
  const std::vector<double> wide = train<double>(10), narrow = train<float>(10);
  for (std::size_t i = 0; i < wide.size(); ++i) EXPECT_NEAR(narrow[i], wide[i], 1e-5) << "step " << i;
}

TEST(CustomOp, HasTheGradientOfItsKernel) {
  Parameter x{.shape = {3, 4}, .initialize = nn::normal(0, 1)};
  const auto function = [&](const Inputs& in) {
    return Traced{.loss = mean(softplus(in.graph().parameter(x), 3) * in["c"])};
  };
  CompiledModel model({{"x", &x}}, function, {.dtype = DType::F64});
  Plan& plan = model.plan(Mode::Train, {{"c", {{3, 4}, DType::F64}}});
  const auto loss_of = [&](const Tensor& values) {
    model.parameters().write("x", values);
    std::fill_n(static_cast<double*>(plan.input("c")), 12, 0.7);
    plan.run();
    return plan.loss() * plan.weight();
  };
  const Tensor start = model.parameters().read("x");
  loss_of(start);
  const Tensor gradient = model.parameters().read_gradient("x");
  for (std::size_t i = 0; i < 12; ++i) {
    Tensor above = start.clone(), below = start.clone();
    above.data<double>()[i] += 1e-5;
    below.data<double>()[i] -= 1e-5;
    EXPECT_NEAR(gradient.data<double>()[i], (loss_of(above) - loss_of(below)) / 2e-5, 1e-8);
  }
}

TEST(CustomOp, IsNamedInErrors) {
  Graph graph(Mode::Train, DType::F32);
  try {
    softplus(graph.input("x", {{3}, DType::F32}), 1);
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[user_softplus] (model): input is f32(3), expected a matrix");
  }
}

// An op that says neither how it is computed nor how it is differentiated.
class BareOp : public Op {
 public:
  std::string_view name() const override { return "user_bare"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
};

TEST(CustomOp, WithoutKernelOrGradientIsAnErrorWhenCompiled) {
  Parameter x{.shape = {3}, .initialize = nn::constant(1)};
  const auto function = [&](const Inputs& in) {
    return Traced{.loss = mean(apply_op(std::make_shared<BareOp>(), {in.graph().parameter(x)}))};
  };
  CompiledModel model({{"x", &x}}, function);
  const auto message = [&](Mode mode) {
    try {
      model.plan(mode, {{"c", {{3}, DType::F32}}});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(message(Mode::Train), "[user_bare] this op has no gradient, and the loss depends on it");
  EXPECT_EQ(message(Mode::Eval), "[user_bare] no kernel is registered for inputs (f32(3))");
}

}  // namespace
}  // namespace lockstep
