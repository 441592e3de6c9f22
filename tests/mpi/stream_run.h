// For the tests of sessions whose samples come from producers: a simulation per rank, and a run that trains beside it.
#pragma once

#include <cstring>
#include <vector>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/losses/regression.h"
#include "lockstep/nn/layers.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/pointwise.h"
#include "tests/mpi/session_run.h"

namespace lockstep::test {

namespace fs = std::filesystem;

inline const std::vector<data::Field> kFields{{"x", {3}, DType::F64}, {"y", {2}, DType::F64}};

// Sample `n` of a rank's simulation.
inline void simulate(int rank, std::int64_t n, std::span<std::byte* const> out) {
  RandomStream random(static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(n));
  auto *x = reinterpret_cast<double*>(out[0]), *y = reinterpret_cast<double*>(out[1]);
  for (int k = 0; k < 3; ++k) x[k] = random.uniform(-1, 1);
  y[0] = x[0] * x[1];
  y[1] = x[1] - x[2];
}

// Adds noise, which must be the same after a resume.
class Noise : public data::Transform {
 public:
  std::vector<data::Field> fields(const std::vector<data::Field>& in) const override { return in; }
  void apply(const data::SampleKey& key, const std::vector<data::Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override {
    for (std::size_t f = 0; f < shape.size(); ++f) std::memcpy(out[f], in[f], shape[f].bytes());
    *reinterpret_cast<double*>(out[1]) += key.random("noise").uniform(-0.1, 0.1);
  }
};

using Pull = std::function<bool(const data::StreamStart&, std::int64_t, data::StreamSample&)>;

// Streams whose samples `pull` makes, by their number.
inline data::StreamSource source_of(const Pull& pull, int prefetch, std::vector<data::StreamStart>* starts = nullptr) {
  return {.fields = kFields,
          .open = [pull, starts](const data::StreamStart& start) -> data::StreamPull {
            if (starts != nullptr) starts->push_back(start);
            return [pull, start, n = start.consumed](data::StreamSample& sample) mutable {
              return pull(start, n++, sample);
            };
          },
          .prefetch = prefetch,
          .description = "simulations"};
}
// Streams of `length(rank)` samples.
inline data::StreamSource stream_of(const std::function<std::int64_t(int)>& length, int prefetch = 2,
                                    std::vector<data::StreamStart>* starts = nullptr) {
  return source_of(
      [length](const data::StreamStart& start, std::int64_t n, data::StreamSample& sample) {
        if (n >= length(start.rank)) return false;
        simulate(start.rank, n, sample.fields);
        return true;
      },
      prefetch, starts);
}
inline data::StreamSource endless(int prefetch = 2, std::vector<data::StreamStart>* starts = nullptr) {
  return stream_of([](int) { return std::int64_t{1} << 40; }, prefetch, starts);
}

inline train::Options stream_options(const fs::path& output, std::int64_t steps) {
  train::Options options = options_for(output, steps);
  options.global_batch = 8 * world().size();
  options.stream = {.steps_per_epoch = 5, .reservoir = {.capacity = 20, .replay = 0.5}};
  options.precision = train::Precision::F64;
  options.rate.peak = 0.05;
  options.checkpoints.every_steps = 3;
  options.checkpoints.keep = "0";
  options.log_every = 1;
  return options;
}

struct Outcome {
  std::uint64_t weights = 0;
  std::int64_t updates = 0, samples = 0;  // samples: of all updates in this start
  int status = 0;
};

inline Outcome train_stream(const comm::Communicator& comm, const train::Options& options, data::StreamSource source,
                            const std::function<void(std::int64_t)>& after_step = {}) {
  data::RunData data;
  data.stream = std::move(source);
  data.train_transforms = {std::make_shared<Noise>()};
  data.eval = std::make_unique<data::FunctionDataset>(data::FunctionDatasetOptions{
      .size = 16, .fields = kFields, .read = [](std::int64_t i, std::span<std::byte* const> out) {
        simulate(99, i, out);
      }});
  nn::Sequential network;
  network.append<nn::Linear>(nn::LinearConfig{.in = 3, .out = 16}).append(lockstep::tanh);
  network.append<nn::Linear>(nn::LinearConfig{.in = 16, .out = 2});
  train::Session session(comm, options, "test_stream_session", "{}", std::move(data));
  train::Trainer& trainer = session.build(network, [&](const plan::Inputs& in) {
    const Value y = network(in["x"]);
    return plan::Traced{.loss = mean_squared_error(y, in["y"]), .prediction = y};
  });
  Outcome result;
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) {
      const train::Totals& totals = trainer.step(batch, session.learning_rate());
      result.samples += totals.samples;
      session.report(totals);
      if (after_step) after_step(trainer.updates());
    }
    session.finish_epoch();
  }
  result.weights = trainer.weights_hash();
  result.updates = trainer.updates();
  result.status = session.status();
  return result;
}

inline fs::path file(const fs::path& output, std::int64_t step) {
  return checkpoint::path_for(output / "checkpoints", step);
}

}  // namespace lockstep::test
