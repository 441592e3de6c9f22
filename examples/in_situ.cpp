// Trains beside a simulation: each rank's producer makes samples, and past ones stay in a reservoir to be trained
// again. After a kill, the simulation goes on where the newest checkpoint says.
//
//   mpirun -n 2 in_situ --epochs 10 --reservoir 2000 --resume auto
#include "lockstep/core/random.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/train/run/program.h"

using namespace lockstep;

struct Oscillator {  // the simulation: a damped oscillator that is pushed now and then
  RandomStream pushes;
  double position = 1, speed = 0;

  void advance(float* before, float* after) {  // by a tenth of a second
    if (pushes.below(20) == 0) speed += pushes.uniform(-1, 1);
    before[0] = static_cast<float>(position), before[1] = static_cast<float>(speed);
    for (int i = 0; i < 10; ++i) position += 0.01 * (speed -= 0.01 * (position + 0.3 * speed));
    after[0] = static_cast<float>(position), after[1] = static_cast<float>(speed);
  }
};

data::StreamPull start_simulation(const data::StreamStart& start) {
  Oscillator oscillator{RandomStream(1, static_cast<std::uint64_t>(start.rank))};
  float skipped[4];  // samples that are trained already: a long simulation reads its own restart file here
  for (std::int64_t n = 0; n < start.consumed; ++n) oscillator.advance(skipped, skipped + 2);
  return [oscillator](data::StreamSample& sample) mutable {
    oscillator.advance(sample.field<float>(0), sample.field<float>(1));
    return true;  // false: the simulation has ended
  };
}

data::RunData open_oscillator(const data::DatasetOptions& /*options*/) {
  data::RunData data;
  data.stream = {.fields = {{"state", {2}, DType::F32}, {"next", {2}, DType::F32}}, .open = start_simulation};
  return data;  // data.eval: a data set to evaluate on
}

int main(int argc, char** argv) {
  const std::vector<data::DatasetEntry> own{{.name = "oscillator",
                                             .description = "a simulation beside the training",
                                             .kind = data::DatasetKind::Stream,
                                             .open_all = open_oscillator}};
  train::Program program("in_situ", "Trains beside a simulation.",
                         {.dataset = {.name = "oscillator"}, .epochs = 10, .rate = {.peak = 0.1}}, own);
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 2, .out = 32}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 32, .out = 2});
  return program.run(argc, argv, [&](train::Session& session) {
    train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
      const Value next = network(in["state"]);
      return plan::Traced{.loss = mean_squared_error(next, in["next"]), .prediction = next};
    });
    while (session.next_epoch()) {
      for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
      session.finish_epoch();
    }
  });
}
