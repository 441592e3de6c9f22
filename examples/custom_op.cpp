// A custom op and a custom loss: softsign, y = x / (1 + |x|), with its gradient and its kernels, and the pseudo-Huber
// loss, which is made of other ops. The network learns the sign of the product of two numbers.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/data/stream.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"

using namespace lockstep;

class SoftsignGradient : public Op {  // (y, dy) -> dx = dy (1 - |y|)^2
 public:
  std::string_view name() const override { return "softsign_gradient"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
};

class Softsign : public Op {  // x -> y
 public:
  std::string_view name() const override { return "softsign"; }
  std::vector<Type> infer(std::string_view, std::span<const Type> inputs) const override { return {inputs[0]}; }
  std::vector<Value> gradient(const Request& r) const override {
    return {apply_op(std::make_shared<SoftsignGradient>(), {r.outputs[0], r.gradients[0]})};
  }
};

Value softsign(Value x) { return apply_op(std::make_shared<Softsign>(), {x}); }

// Kernels on plain memory: here both types of arithmetic, on one function of an element's inputs.
template <class F>
void add_kernel(const char* op, F function) {
  kernels::register_plain_kernel(op, [function](const kernels::KernelRequest& request, const kernels::Arguments& a) {
    const auto run = [&]<class T>(T) {
      const T *first = a.in<T>(0), *last = a.in<T>(request.inputs.size() - 1);
      std::transform(first, first + request.outputs[0].shape.elements(), last, a.out<T>(0), function);
    };
    request.dtype() == DType::F64 ? run(double{}) : run(float{});
  });
}

// sqrt(1 + r^2) - 1: a square near zero, a line far away.
Loss pseudo_huber(Value y, Value target) { return mean(lockstep::sqrt(square(y - target) + 1.0) - 1.0); }

struct Network : nn::Module {
  nn::Child<nn::Linear> hidden{this, "hidden", {.in = 2, .out = 32}};
  nn::Child<nn::Linear> out{this, "out", {.in = 32, .out = 1}};
  Value operator()(Value x) const { return out(observe("activation", softsign(hidden(x)))); }
};

int learn() {
  const comm::Environment mpi;
  add_kernel("softsign", [](auto x, auto) { return x / (1 + std::abs(x)); });
  add_kernel("softsign_gradient", [](auto y, auto dy) { return dy * (1 - std::abs(y)) * (1 - std::abs(y)); });
  Network network;
  const auto model = [&](const plan::Inputs& in) {
    return plan::Traced{.loss = pseudo_huber(network(in["x"]), in["sign"])};
  };
  const std::vector<data::Field> fields = {{"x", {2}, DType::F32}, {"sign", {1}, DType::F32}};
  train::Trainer trainer(comm::Communicator::self(), network, model, fields,
                         {.global_batch = 64, .rule = optim::adam({})});
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto draw = [&](data::StreamSample& sample) {
    const float a = sample.field<float>(0)[0] = uniform(random), b = sample.field<float>(0)[1] = uniform(random);
    *sample.field<float>(1) = a * b > 0 ? 1 : -1;
    return true;
  };
  data::StreamLoader stream({.fields = fields, .pull = draw, .batch = 64});
  double loss = 0;
  for (int step = 0; step < 600; ++step) loss = trainer.step(stream.next(), 0.01).loss;
  const Tensor activation = trainer.observed("activation"), gradient = trainer.gradient("out.bias");
  fmt::print("loss {:.3f}, activation {}, gradient {}\n", loss, activation.shape().str(), gradient.shape().str());
  return loss < 0.15 ? 0 : 1;
}

int main() { return train::guard_main(learn); }
