// The parts that a user adds from outside the library: an op with its own kernel, a loss of the library's ops, and a
// module, trained together.
#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/kernels/registry.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/batch_norm2d.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/parallel/update/updater.h"
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
void run_softplus(const kernels::KernelRequest& request, const kernels::Arguments& a) {
  const auto beta = static_cast<T>(request.as<SoftplusOp>().beta());
  for (std::int64_t i = 0; i < request.outputs[0].shape.elements(); ++i) {
    a.out<T>(0)[i] = std::log1p(std::exp(beta * a.in<T>(0)[i])) / beta;
  }
}

Value own_softplus(Value x, double beta) {
  static const bool registered = [] {
    kernels::register_plain_kernel(
        "user_softplus", [](const kernels::KernelRequest& request, const kernels::Arguments& a) {
          request.dtype() == DType::F64 ? run_softplus<double>(request, a) : run_softplus<float>(request, a);
        });
    return true;
  }();
  (void)registered;
  return apply_op(std::make_shared<SoftplusOp>(beta), {x});
}

struct Network : nn::Module {
  nn::Child<nn::Linear> first{this, "first", {.in = 3, .out = 8}};
  nn::Child<nn::Linear> second{this, "second", {.in = 8, .out = 1}};
  Parameter& scale = add("scale", {.shape = {}, .initialize = nn::constant(1)});
  Value operator()(Value x) const {
    const Value y = second(own_softplus(first(x), 2));
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
  const auto function = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = log_cosh(network(in["x"]), in["y"])};
  };
  plan::CompiledModel model(network.named_parameters(), function,
                            {.dtype = dtype_of<T>, .seed = 1, .optimizer_states = 2});
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {{16, 3}, dtype_of<T>}}, {"y", {{16, 1}, dtype_of<T>}}});
  parallel::Updater updater(model.parameters(), optim::adam({}), {});
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
  const auto function = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = mean(own_softplus(in.graph().parameter(x), 3) * in["c"])};
  };
  plan::CompiledModel model({{"x", &x}}, function, {.dtype = DType::F64});
  plan::Plan& plan = model.plan(Mode::Train, {{"c", {{3, 4}, DType::F64}}});
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
    own_softplus(graph.input("x", {{3}, DType::F32}), 1);
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
  const auto function = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = mean(apply_op(std::make_shared<BareOp>(), {in.graph().parameter(x)}))};
  };
  plan::CompiledModel model({{"x", &x}}, function);
  const auto message = [&](Mode mode) {
    try {
      model.plan(mode, {{"c", {{3}, DType::F32}}});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(
      message(Mode::Train),
      "[user_bare] (model): this op has no gradient, and the loss or a gradient() depends on it; override gradient() "
      "in its class, or use an op that has a gradient");
  EXPECT_EQ(message(Mode::Eval), "[user_bare] (model): no kernel is registered for inputs (f32(3))");
}

// An op with a name that is taken. As kernels are found by name, it would get those of another class.
template <int kNumber>
class NamesakeOp : public Op {
 public:
  explicit NamesakeOp(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }

 private:
  std::string name_;
};

template <class F>
std::string error_of_prediction(const F& predict) {
  plan::CompiledModel model({}, [&](const plan::Inputs& in) { return plan::Traced{.prediction = predict(in["x"])}; });
  try {
    model.plan(Mode::Eval, {{"x", {{2, 3}, DType::F32}}}).run();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(CustomOp, MayNotHaveTheNameOfABuiltInOne) {
  for (const std::string name : {"pointwise", "softmax", "conv2d", "dropout", "reorder", "max_pool2d"}) {
    const std::string error =
        error_of_prediction([&](Value x) { return apply_op(std::make_shared<NamesakeOp<1>>(name), {x}); });
    EXPECT_TRUE(error.starts_with("[" + name + "] (model): the op is of the class ")) << error;
    EXPECT_NE(error.find("NamesakeOp<1>, but the name '" + name + "' belongs to the library's lockstep::"),
              std::string::npos)
        << error;
  }
  EXPECT_EQ(error_of_prediction([](Value x) { return exp(x); }), "no error");
}

TEST(CustomOp, MayNotHaveTheNameOfAnother) {
  kernels::register_plain_kernel("user_namesake",
                                 [](const kernels::KernelRequest& request, const kernels::Arguments& a) {
                                   std::copy_n(a.in<float>(0), request.outputs[0].shape.elements(), a.out<float>(0));
                                 });
  const auto first = [](Value x) { return apply_op(std::make_shared<NamesakeOp<1>>("user_namesake"), {x}); };
  const auto second = [](Value x) { return apply_op(std::make_shared<NamesakeOp<2>>("user_namesake"), {x}); };
  EXPECT_EQ(error_of_prediction(first), "no error");
  const std::string error = error_of_prediction(second);
  EXPECT_NE(error.find("NamesakeOp<2>, but the name 'user_namesake' belongs to the class "), std::string::npos)
      << error;
  EXPECT_NE(error.find("NamesakeOp<1>; kernels are found by name: give the op another name"), std::string::npos)
      << error;
  EXPECT_EQ(error_of_prediction(first), "no error");
}

TEST(CustomOp, AKernelOfAnotherClassSaysSo) {
  kernels::register_plain_kernel(
      "user_other_class",
      [](const kernels::KernelRequest& request, const kernels::Arguments&) { (void)request.as<SoftplusOp>().beta(); });
  const std::string error =
      error_of_prediction([](Value x) { return apply_op(std::make_shared<NamesakeOp<1>>("user_other_class"), {x}); });
  EXPECT_NE(error.find("the kernel of this name is for ops of the class "), std::string::npos) << error;
  EXPECT_NE(error.find("SoftplusOp, the op is a "), std::string::npos) << error;
}

TEST(KernelRegistry, EveryBuiltInNameHasAClass) {
  kernels::KernelRegistry registry;
  kernels::register_generic_kernels(registry);
  kernels::register_onednn_kernels(registry);
  kernels::register_native_kernels(registry);
  EXPECT_GE(registry.ops().size(), 30u);
  for (const std::string& name : registry.ops()) EXPECT_TRUE(registry.is_reserved(name)) << name;
}

// The variance over the whole batch, of a batch norm's f64 sums: (2C) -> (C).
class VarianceOp : public Op {
 public:
  explicit VarianceOp(std::int64_t count) : count_(count) {}
  std::int64_t count() const { return count_; }
  std::string_view name() const override { return "user_variance"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override {
    return {{Shape{inputs[0].shape[0] / 2}, inputs[0].dtype}};
  }
  std::vector<Value> gradient(const Request&) const override { return {Value()}; }

 private:
  std::int64_t count_;
};

void run_variance(const kernels::KernelRequest& request, const kernels::Arguments& a) {
  const std::int64_t channels = request.outputs[0].shape[0];
  const auto count = static_cast<double>(request.as<VarianceOp>().count());
  for (std::int64_t c = 0; c < channels; ++c) {
    const double mean = a.in<double>(0)[c] / count;
    a.out<double>(0)[c] = a.in<double>(0)[channels + c] / count - mean * mean;
  }
}

// Between the norm and its ReLU an op reads the sums: they have to be there by then, so the two stay apart.
struct TappedNorm : nn::Module {
  nn::Child<nn::Conv2d> conv{this, "conv", {.in = 2, .out = 3, .kernel = 3}};
  Parameter& gamma = add("gamma", {.shape = {3}, .initialize = nn::constant(1)});
  Parameter& beta = add("beta", {.shape = {3}, .initialize = nn::constant(0.5)});
  plan::Traced operator()(const plan::Inputs& in) const {
    Graph& graph = in.graph();
    const Value x = observe("x", conv(in["x"]));
    const BatchNormOutputs norm = batch_norm2d(x, graph.parameter(gamma), graph.parameter(beta), 1e-5);
    observe("variance", apply_op(std::make_shared<VarianceOp>(x.shape().elements() / 3), {norm.sums}));
    return {.loss = mean(square(relu(norm.y)))};
  }
};

template <class T>
void expect_tapped_norm_trains(bool fuse) {
  const TappedNorm net;
  plan::CompiledModel model(net.named_parameters(), [&](const plan::Inputs& in) { return net(in); },
                            {.dtype = dtype_of<T>}, {.fuse = fuse});
  plan::Plan& plan = model.plan(Mode::Train, {{"x", {{4, 2, 6, 5}, dtype_of<T>}}});
  parallel::Updater updater(model.parameters(), optim::sgd({}), {});
  std::vector<double> losses;
  for (int step = 1; step <= 5; ++step) {
    RandomStream random(9, 9);
    for (std::int64_t i = 0; i < 4 * 2 * 6 * 5; ++i)
      static_cast<T*>(plan.input("x"))[i] = static_cast<T>(random.normal());
    plan.run();
    losses.push_back(plan.loss());
    const Tensor x = plan.observed("x").to(DType::F64), variance = plan.observed("variance").to(DType::F64);
    for (std::size_t c = 0; c < 3; ++c) {
      double sum = 0, squares = 0;
      for (std::size_t i = 0; i < 4 * 3 * 12; ++i) {
        if (i / 12 % 3 != c) continue;
        sum += x.data<double>()[i] / 48;
        squares += x.data<double>()[i] * x.data<double>()[i] / 48;
      }
      EXPECT_NEAR(variance.data<double>()[c], squares - sum * sum, 1e-5);
    }
    updater.update(0.1, plan.weight(), step);
  }
  EXPECT_LT(losses.back(), 0.9 * losses.front());
}

TEST(CustomOp, MayReadTheSumsOfABatchNormBeforeItsRelu) {
  kernels::register_plain_kernel("user_variance", run_variance);
  for (const bool fuse : {true, false}) {
    expect_tapped_norm_trains<float>(fuse);
    expect_tapped_norm_trains<double>(fuse);
  }
}

// The mean of |x|, in the type of x whatever that is.
class AbsoluteLossOp : public Op {
 public:
  std::string_view name() const override { return "user_absolute_loss"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override {
    return {{Shape{}, inputs[0].dtype}};
  }
};

TEST(CustomOp, ALossInBf16IsReadAsF32) {
  kernels::register_plain_kernel("user_absolute_loss",
                                 [](const kernels::KernelRequest& request, const kernels::Arguments& a) {
                                   const std::int64_t n = request.inputs[0].shape.elements();
                                   float sum = 0;
                                   for (std::int64_t i = 0; i < n; ++i) sum += std::abs(a.in<float>(0)[i]);
                                   *a.out<float>(0) = sum / static_cast<float>(n);
                                 });
  const nn::Linear hidden({.in = 6, .out = 16}), out({.in = 16, .out = 3});
  std::vector<NamedParameter> parameters;
  for (const NamedParameter& p : hidden.named_parameters()) parameters.push_back({"hidden." + p.name, p.parameter});
  for (const NamedParameter& p : out.named_parameters()) parameters.push_back({"out." + p.name, p.parameter});
  DType logits_type = DType::F32;
  const auto function = [&](const plan::Inputs& in) {
    const Value logits = out(observe("hidden", relu(hidden(in["x"]))));
    logits_type = logits.dtype();
    return plan::Traced{.loss = apply_op(std::make_shared<AbsoluteLossOp>(), {logits}), .prediction = logits};
  };
  plan::CompiledModel model(parameters, function, {}, {.bf16 = true});
  plan::Plan& plan = model.plan(Mode::Eval, {{"x", {{5, 6}, DType::F32}}});
  EXPECT_EQ(logits_type, DType::BF16);
  for (int i = 0; i < 30; ++i) static_cast<float*>(plan.input("x"))[i] = 0.1F * static_cast<float>(i % 7 - 2);
  plan.run();
  const Tensor prediction = plan.prediction(), seen = plan.observed("hidden");
  ASSERT_EQ(prediction.dtype(), DType::F32);
  EXPECT_EQ(seen.dtype(), DType::F32);
  EXPECT_EQ(seen.shape(), Shape({5, 16}));
  double want = 0;
  for (const float v : prediction.data<float>()) want += std::abs(v) / 15;
  EXPECT_GT(want, 0.01);
  EXPECT_NEAR(plan.loss(), want, 0.01 * want) << "rounded to bf16 once";
}

}  // namespace
}  // namespace lockstep
