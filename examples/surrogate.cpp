// A simulation code that trains a surrogate of itself inside its own MPI job: the simulation initialises MPI and gives
// the learner one of its communicators. Here two ensembles, even and odd ranks, simulate oscillators of different
// stiffness, and each trains its own.
#include <cmath>
#include <cstdio>
#include <random>

#include "lockstep/comm/mpi_interop.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/stream.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"

using namespace lockstep;

struct Oscillator {  // the simulation: a damped oscillator of random damping, seen at a random time
  double stiffness;
  std::mt19937 random;

  void sample(float* state, float* position) {
    std::uniform_real_distribution<float> uniform(0, 1);
    const float damping = state[0] = uniform(random), time = state[1] = uniform(random);
    *position = static_cast<float>(std::exp(-damping * time) * std::cos(stiffness * time));
  }
};

double train_surrogate(MPI_Comm mine, double stiffness) {
  const comm::Communicator comm = comm::duplicate_of(mine);
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 2, .out = 32}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 32, .out = 32}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 32, .out = 1});
  const auto model = [&](const plan::Inputs& in) {
    const Value position = network(in["state"]);
    return plan::Traced{.loss = mean_squared_error(position, in["position"]), .prediction = position};
  };

  const std::vector<data::Field> fields = {{"state", {2}, DType::F32}, {"position", {1}, DType::F32}};
  train::Trainer trainer(comm, network, model, fields, {.global_batch = 64 * comm.size(), .rule = optim::adam({})});

  // Each rank trains on its own simulations; a thread simulates ahead.
  Oscillator running{stiffness, std::mt19937(static_cast<unsigned>(1 + comm.rank()))};
  std::int64_t left = 64 * 1000;
  const auto simulate = [&](data::StreamSample& sample) {
    running.sample(sample.field<float>(0), sample.field<float>(1));
    return left-- > 0;
  };
  const data::StreamOptions options{.fields = fields, .pull = simulate, .batch = 64};
  data::StreamLoader stream(options.for_rank(comm.rank(), comm.size()));  // whose samples have ids of their own
  const optim::Schedule rate = optim::cosine(0.01, 1000);
  while (trainer.step(stream.next(), rate(static_cast<double>(trainer.updates()))).samples > 0) {
  }

  // Held-out samples, the same on all ranks, which share the work of the evaluation.
  Tensor states({1000, 2}, DType::F32), positions({1000, 1}, DType::F32);
  Oscillator unseen{stiffness, std::mt19937(0)};
  for (std::size_t i = 0; i < 1000; ++i) unseen.sample(&states.data<float>()[2 * i], &positions.data<float>()[i]);
  std::vector<data::NamedTensor> held_out;
  held_out.push_back({"state", std::move(states)});
  held_out.push_back({"position", std::move(positions)});
  const data::TensorDataset dataset(std::move(held_out));
  data::Loader loader(dataset, trainer.sampler(dataset, {.shuffle = false}));
  return trainer.evaluate(loader).loss;
}

int simulate(int argc, char** argv) {
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm ensemble = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &ensemble);
  const double stiffness = rank % 2 == 0 ? 3 : 6;
  const double error = train_surrogate(ensemble, stiffness);
  if (rank < 2) std::printf("stiffness %g: mean squared error %.2e\n", stiffness, error);
  MPI_Comm_free(&ensemble);
  MPI_Finalize();
  return error < 1e-3 ? 0 : 1;
}

int main(int argc, char** argv) {
  return train::guard_main([&] { return simulate(argc, argv); });  // an error ends both ensembles
}
