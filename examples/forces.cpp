// Learns a potential from forces: the model computes an energy, the loss compares the gradient of the energy with the
// forces of a simulation, and training differentiates this gradient once more.
#include <cmath>
#include <cstdio>
#include <random>

#include "lockstep/comm/communicator.h"
#include "lockstep/comm/environment.h"
#include "lockstep/data/stream.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/gradient.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"

using namespace lockstep;

// The forces of the energy (x^2 + y^2) / 2 + sin(2 x) y.
void simulate(std::mt19937& random, float* position, float* force) {
  std::uniform_real_distribution<float> uniform(-1.5F, 1.5F);
  const float x = position[0] = uniform(random), y = position[1] = uniform(random);
  force[0] = -(x + 2 * std::cos(2 * x) * y);
  force[1] = -(y + std::sin(2 * x));
}

int main() {
  return train::guard_main([] {
    const comm::Environment mpi;
    const comm::Communicator comm = comm::Communicator::world();
    nn::Sequential energy;
    energy.append<nn::Linear>(nn::LinearConfig{.in = 2, .out = 48}).append(lockstep::tanh);
    energy.append<nn::Linear>(nn::LinearConfig{.in = 48, .out = 48}).append(lockstep::tanh);
    energy.append<nn::Linear>(nn::LinearConfig{.in = 48, .out = 1, .bias = false});  // a constant makes no force
    const auto model = [&](const plan::Inputs& in) {
      const Value force = -gradient(sum(energy(in["position"])), in["position"]);
      return plan::Traced{.loss = mean_squared_error(force, in["force"]), .prediction = force};
    };

    const std::vector<data::Field> fields = {{"position", {2}, DType::F32}, {"force", {2}, DType::F32}};
    constexpr std::int64_t kSteps = 1500;
    train::Trainer trainer(comm, energy, model, fields, {.global_batch = 64 * comm.size(), .rule = optim::adam({})});
    std::mt19937 random(static_cast<unsigned>(1 + comm.rank()));
    std::int64_t left = 64 * kSteps;
    const data::StreamOptions stream_options{.fields = fields,
                                             .pull =
                                                 [&](data::StreamSample& sample) {
                                                   simulate(random, sample.field<float>(0), sample.field<float>(1));
                                                   return left-- > 0;
                                                 },
                                             .batch = 64};
    data::StreamLoader stream(stream_options.for_rank(comm.rank(), comm.size()));
    const optim::Schedule rate = optim::cosine(0.01, static_cast<double>(kSteps));
    double error = 1;
    for (;;) {
      const auto metrics = trainer.step(stream.next(), rate(static_cast<double>(trainer.updates())));
      if (metrics.samples == 0) break;
      error = metrics.loss;
    }
    if (comm.rank() == 0) std::printf("mean squared error of the forces: %.2e\n", error);
    return error < 1e-2 ? 0 : 1;
  });
}
