// An op and a loss of one's own: softsign, y = x / (1 + |x|), with its gradient and its kernels, and the pseudo-Huber loss, which is
// other ops put together. The network learns the sign of the product of two numbers.
#include <cmath>
#include <cstdio>
#include <random>

#include "lockstep/comm/environment.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/elementwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/train/trainer.h"

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

// Kernels on plain memory. `run` is called with a float or a double, the type of the values at hand.
template <class F>
void add_kernel(const char* op, F run) {
  register_plain_kernel(op, [run](const KernelRequest& request, const Arguments& a) {
    const std::int64_t n = request.outputs[0].shape.elements();
    request.dtype() == DType::F64 ? run(double{}, n, a) : run(float{}, n, a);
  });
}

void register_softsign() {
  add_kernel("softsign", []<class T>(T, std::int64_t n, const Arguments& a) {
    for (std::int64_t i = 0; i < n; ++i) a.out<T>(0)[i] = a.in<T>(0)[i] / (1 + std::abs(a.in<T>(0)[i]));
  });
  add_kernel("softsign_gradient", []<class T>(T, std::int64_t n, const Arguments& a) {
    for (std::int64_t i = 0; i < n; ++i) {
      const T slope = 1 - std::abs(a.in<T>(0)[i]);
      a.out<T>(0)[i] = a.in<T>(1)[i] * slope * slope;
    }
  });
}

// sqrt(1 + r^2) - 1: a square near zero, a line far away.
Loss pseudo_huber(Value prediction, Value target) { return mean(lockstep::sqrt(square(prediction - target) + 1.0) - 1.0); }

struct Network : nn::Module {
  nn::Linear hidden{{.in = 2, .out = 32}}, out{{.in = 32, .out = 1}};
  Network() {
    add("hidden", hidden);
    add("out", out);
  }
  Value operator()(Value x) const { return out(observe("activation", softsign(hidden(x)))); }
};

int main() {
  const comm::Environment mpi;
  register_softsign();
  Network network;
  const auto model = [&](const Inputs& in) { return Traced{.loss = pseudo_huber(network(in["x"]), in["sign"])}; };
  const std::vector<data::Field> fields = {{"x", {2}, DType::F32}, {"sign", {1}, DType::F32}};
  train::Trainer trainer(comm::Communicator::self(), network, model, fields, {.global_batch = 64, .rule = optim::adam({})});

  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto draw = [&](data::StreamSample& sample) {
    float* x = sample.field<float>(0);
    x[0] = uniform(random);
    x[1] = uniform(random);
    *sample.field<float>(1) = x[0] * x[1] > 0 ? 1 : -1;
    return true;
  };
  data::StreamLoader stream({.fields = fields, .pull = draw, .batch = 64});
  double loss = 0;
  for (int step = 0; step < 600; ++step) loss = trainer.step(stream.next(), 0.01).loss;

  const Tensor activation = trainer.observed("activation"), gradient = trainer.gradient("out.bias");
  std::printf("loss %.3f; activation %s, gradient of out.bias %.1e\n", loss, activation.shape().str().c_str(),
              static_cast<double>(gradient.data<float>()[0]));
  return loss < 0.15 ? 0 : 1;
}
