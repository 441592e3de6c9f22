// Measures the cost of checkpoints: the time of a step with a save at its end, and of steps during which the file is
// written in the background, compared with undisturbed steps; and the speed at which the file is written.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/random_batch.h"
#include "bench/timing.h"
#include "lockstep/checkpoint/background_writer.h"
#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/step/trainer.h"

using namespace lockstep;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct BenchOptions {
  std::string model = "resnet50", directory = "bench-checkpoints";
  std::int64_t batch = 8;
  int saves = 5, quiet = 4, threads = 0;
};

// Seconds, by what happened in the step.
struct Times {
  std::vector<double> quiet, saving,
      writing;                        // steps: undisturbed; with the save at their end; while a file is written
  std::vector<double> copies, files;  // of the snapshot, and from there until the file was on the disk
};

// Rank 0 decides when the next save is due: some undisturbed steps after the last file is complete.
Times measure(train::Trainer& trainer, const data::Batch& batch, const BenchOptions& o,
              const comm::Communicator& comm) {
  Times times;
  std::unique_ptr<checkpoint::StateSnapshot> snapshot;
  std::unique_ptr<checkpoint::BackgroundWriter> writer;
  std::atomic<int> written = 0;
  if (comm.is_root()) {
    snapshot = trainer.make_snapshot();
    writer = std::make_unique<checkpoint::BackgroundWriter>(
        checkpoint::BackgroundWriterOptions{.folder = [&o] { return io::Folder(o.directory); },
                                            .keep = {.last = 1},
                                            .report =
                                                [&](const checkpoint::Written& w) {
                                                  times.files.push_back(w.seconds);
                                                  ++written;
                                                }});
  }
  int saves = 0, quiet = -2;  // the first steps warm up
  const auto root_says = [&](bool yes) { return comm.broadcast_value(std::int32_t{yes}) != 0; };
  while (!root_says(saves == o.saves && written.load() == saves)) {
    const bool undisturbed = written.load() == saves;
    const bool due = root_says(undisturbed && quiet >= o.quiet && saves < o.saves);
    const auto begin = Clock::now();
    trainer.step(batch, 0.1);
    if (due) {
      const auto copying = Clock::now();
      trainer.snapshot(snapshot.get());
      times.copies.push_back(seconds_since(copying));
      if (writer) writer->write({.tensors = snapshot->tensors(), .metadata = "{}", .step = trainer.updates()});
      ++saves;
      quiet = 0;
      times.saving.push_back(seconds_since(begin));
    } else if (!undisturbed) {
      times.writing.push_back(seconds_since(begin));
    } else if (++quiet > 0) {
      times.quiet.push_back(seconds_since(begin));
    }
  }
  if (writer) writer->finish();
  return times;
}

void print(const BenchOptions& o, const Times& t, const train::Trainer& trainer, const comm::Communicator& comm) {
  const double quiet = median(t.quiet), stall = median(t.saving) - quiet;
  const double bytes = static_cast<double>(trainer.state_bytes());
  const nlohmann::ordered_json line{{"bench", "checkpoint"},
                                    {"model", o.model},
                                    {"batch", o.batch},
                                    {"ranks", comm.size()},
                                    {"state_mib", bytes / 1048576},
                                    {"step_ms", 1e3 * quiet},
                                    {"copy_ms", 1e3 * median(t.copies)},
                                    {"stall_ms", 1e3 * stall},
                                    {"stall_percent", 100 * stall / quiet},
                                    {"step_while_writing_ms", 1e3 * median(t.writing)},
                                    {"steps_while_writing", t.writing.size() / t.files.size()},
                                    {"file_seconds", median(t.files)},
                                    {"file_mb_per_second", 1e-6 * bytes / median(t.files)},
                                    {"saves", o.saves},
                                    {"cpu", host::cpu_info().model}};
  fmt::print("{}\n", line.dump());
}

void run(const BenchOptions& o, const comm::Communicator& comm) {
  apply(host::budget(comm.local_size(), o.threads, 0));
  const bench::Subject subject = bench::make_subject(o.model, DType::F32);
  const data::Batch batch = bench::random_batch(subject, {.per_rank = o.batch}, comm);
  train::Trainer trainer(comm, *subject.network, subject.function, subject.fields,
                         {.global_batch = batch.step.global_size,
                          .rule = optim::sgd({.momentum = 0.9}),
                          .guards = train::GuardOptions::none()});
  comm::collectively(comm, [&] {
    if (comm.is_root()) std::filesystem::create_directories(o.directory);
  });
  const Times times = measure(trainer, batch, o, comm);
  if (comm.is_root()) print(o, times, trainer, comm);
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions o;
  CLI::App app("What checkpoints cost a training: mpirun -n 2 bench_checkpoint resnet50 --batch 8 --directory DIR");
  app.add_option("model", o.model, "a model of the zoo (`lockstep models` lists them)")->capture_default_str();
  app.add_option("--batch", o.batch, "samples per rank")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--directory", o.directory, "where the files go; the last one stays")->capture_default_str();
  app.add_option("--saves", o.saves, "checkpoints")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--quiet", o.quiet, "undisturbed steps before each")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--threads", o.threads, "compute threads per rank; 0: the cores it may use")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  host::apply_process_settings(comm::launched_local_ranks(), o.threads > 0 ? o.threads : host::environment_threads(),
                               argv);
  const comm::Environment mpi;
  const comm::Communicator world = comm::Communicator::world();
  try {
    run(o, world);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_checkpoint: rank {}: {}\n", world.rank(), error.what());
    comm::abort_job(1);
  }
}
