// For the tests of what a session's callbacks do together: short runs of a small network on built-in data.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "data/datasets/catalogue.h"
#include "lockstep/train/run/session.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {

inline train::Options options_for(const std::filesystem::path& output, std::int64_t steps) {
  train::Options options{
      .dataset = {.name = "digits", .limit_train = 128, .limit_eval = 32}, .epochs = 0, .max_steps = steps};
  options.global_batch = 32;
  options.batch_size = 0;
  options.threads = 1;
  options.loaders = 0;
  options.output = output.string();
  options.checkpoints.every_epochs = 0;
  options.eval_every = 0;
  options.rate.kind = optim::ScheduleOptions::Kind::Constant;
  options.trainer.parallel.overlap = train::ParallelOptions::Overlap::Steps;  // no thread beside each rank
  options.quiet = true;
  options.stall.report = 0;
  return options;
}

struct Result {
  std::int64_t updates = 0;
  int status = 0;
};

// Trains and evaluates as a program does; `body` runs in each step, after its report.
template <class Body>
Result train_all(train::Session& session, const models::Classifier& network, const plan::ModelFunction& model,
                 const Body& body) {
  train::Trainer& trainer = session.build(network, model);
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) {
      session.report(trainer.step(batch, session.learning_rate()));
      body();
    }
    session.finish_epoch();
  }
  return {.updates = trainer.updates(), .status = session.status()};
}

// `add` adds callbacks to the session before it is built.
template <class Add>
Result run_on(const comm::Communicator& comm, const train::Options& options, const Add& add) {
  train::Session session(comm, options, "test_callbacks", "{}", datasets::catalogue());
  add(session);
  const auto network = models::build_model("mnist_mlp", session.data().classes(), session.data().image_shape());
  return train_all(session, *network, models::classify(*network), [] {});
}

template <class Add>
Result run(const train::Options& options, const Add& add) {
  return run_on(world(), options, add);
}

// Of the log of rank 0, which all starts in that folder have written.
inline std::string log_of(const std::filesystem::path& output) {
  std::ostringstream text;
  text << std::ifstream(output / "logs" / "rank-0000.log").rdbuf();
  return text.str();
}

// The same on a communicator of this rank alone, with an output of its own.
template <class Run>
auto alone(const std::filesystem::path& output, const Run& run) {
  const comm::Communicator self = world().split(world().rank(), 0);
  return run(self, output / formatted("alone{}", world().rank()));
}

}  // namespace lockstep::test
