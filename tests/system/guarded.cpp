// A program of a user's own in the frame of train::guard_main(), which fails as its argument says: on the last rank, or
// on all alike.
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/comm/environment.h"
#include "lockstep/comm/mpi_interop.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/data/stream.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/run/guard_main.h"
#include "lockstep/train/step/trainer.h"
#include "models/zoo/classify.h"
#include "models/zoo/mlp.h"

using namespace lockstep;

namespace {

bool is_last(const comm::Communicator& comm) { return comm.rank() == comm.size() - 1; }

[[noreturn]] void wait_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Trains on a stream whose last rank does at its 21st sample what `how` says.
void train(const comm::Communicator& comm, const std::string& how) {
  const models::Mlp network(std::vector<std::int64_t>{4, 8, 2});
  const std::vector<data::Field> fields = {{"image", {4}, DType::F32}, {"label", {}, DType::I32}};
  train::Trainer trainer(comm, network, models::classify(network), fields, {.global_batch = 4 * comm.size()});
  std::int64_t pulled = 0;
  const auto pull = [&](data::StreamSample& sample) {
    std::fill_n(sample.field<float>(0), 4, 0.5F);
    *sample.field<std::int32_t>(1) = 1;
    if (++pulled != 21) return true;
    if (how == "callback" && is_last(comm)) throw std::out_of_range("sample 20 is beyond the tape");
    if (how == "nan" && is_last(comm)) *sample.field<float>(0) = 0.0F / 0.0F;
    if (how == "blocked") wait_for_ever();
    return true;
  };
  data::StreamLoader stream({.fields = fields, .pull = pull, .batch = 4});
  for (int step = 0; step < 20; ++step) {
    if (how == "blocked" && step == 3) fail("tape", "rank {} cannot go on", comm.rank());
    if (how == "middle" && step == 3 && is_last(comm)) fail("tape", "rank {} cannot go on", comm.rank());
    trainer.step(stream.next(), 0.1);
  }
}

void fail_as(const std::string& how, const comm::Communicator& world) {
  if (how == "alike") fail("tape", "no such tape");
  if (how == "one" && is_last(world)) fail("tape", "no such tape");
  if (how == "together") comm::collectively(world, [&] { check(!is_last(world), "tape", "no such tape"); });
  if (how == "command-line") train::check_together(world, [&] { fail("command line", "no tape is named"); });
  if (how == "memory" && is_last(world)) throw std::bad_alloc();
  if (how == "number" && is_last(world)) throw 42;
  if (how == "text" && is_last(world)) throw "no such tape";
  if (how == "thread" && is_last(world)) std::thread([] { fail("tape", "no such tape"); }).join();
  if (how == "odd") {  // a group that rank 0 is no member of
    const comm::Communicator half = world.split(world.rank() % 2);
    if (world.rank() % 2 == 1) comm::collectively(half, [] { fail("tape", "no such tape"); });
  }
  train(world, how);
  world.barrier();
}

// A trainer that is destroyed after MPI_Finalize, or trains then.
void outlive(bool trains) {
  const models::Mlp network(std::vector<std::int64_t>{4, 8, 2});
  const std::vector<data::Field> fields = {{"image", {4}, DType::F32}, {"label", {}, DType::I32}};
  auto pull = [](data::StreamSample&) { return true; };
  data::StreamLoader stream({.fields = fields, .pull = pull});
  std::optional<train::Trainer> trainer;
  {
    const comm::Environment mpi;
    const comm::Communicator world = comm::Communicator::world();
    trainer.emplace(world, network, models::classify(network), fields,
                    train::TrainerOptions{.global_batch = world.size()});
    trainer->step(stream.next(), 0.1);
    world.barrier();
  }
  if (trains) trainer->step(stream.next(), 0.1);
}

int run(const std::string& how, int argc, char** argv) {
  if (how == "outlives" || how == "steps-after") {
    outlive(how == "steps-after");
    return 0;
  }
  if (how == "before") fail("tape", "no such tape");
  if (how == "before-one" && comm::Environment::world_rank() == 1) fail("tape", "no such tape");
  if (how == "caller") {
    MPI_Init(&argc, &argv);
    fail_as("one", comm::duplicate_of(MPI_COMM_WORLD));
  }
  {
    const comm::Environment mpi;
    const comm::Communicator world = comm::Communicator::world();
    if (how == "status") return kExitStopped;
    fail_as(how, world);
  }
  if (how == "after") fail("tape", "no such tape");
  std::puts("trained");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return train::guard_main([&] { return run(argc > 1 ? argv[1] : "", argc, argv); });
}
