// Times training steps of a model on one random batch: forward, backward, reduction over the ranks, SGD with
// momentum (of DLRM: plain SGD). Prints a line for people, or with --json one object for bench/results.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/random_batch.h"
#include "bench/subject.h"
#include "bench/timing.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/host/threads.h"
#include "lockstep/parallel/step/step_times.h"
#include "lockstep/parallel/tree/world_layout.h"
#include "lockstep/train/report/step_profile.h"
#include "lockstep/train/step/trainer.h"

using namespace lockstep;

namespace {

struct BenchOptions {
  std::string model = "resnet20", precision = "f32", conv_math = "fast", bits = "fast", recompute = "norms", kernels,
              wire = "f32", overlap = "auto";
  std::int64_t batch = 64, shards = 0, accumulate = 1;
  int steps = 10, warmup = 3, threads = 0;
  bool json = false, profile = false, first_step = false, sync_bn = false, share_weights = true, autotune = false;
};

plan::CompileOptions compile_options(const BenchOptions& o) {
  const std::map<std::string, plan::Recompute> recompute{
      {"none", plan::Recompute::None}, {"norms", plan::Recompute::Norms}, {"blocks", plan::Recompute::Blocks}};
  using ConvMath = kernels::KernelOptions::ConvMath;
  const std::map<std::string, ConvMath> maths{
      {"fast", ConvMath::Fast}, {"accurate", ConvMath::Accurate}, {"exact", ConvMath::Exact}};
  using Bits = kernels::KernelOptions::Bits;
  const std::map<std::string, Bits> bits{{"fast", Bits::Fast}, {"portable", Bits::Portable}};
  return {.bf16 = o.precision == "bf16",
          .recompute = recompute.at(o.recompute),
          .kernels = {.conv_math = maths.at(o.conv_math), .bits = bits.at(o.bits), .prefer = o.kernels},
          .synchronisation = {.all_norms = o.sync_bn}};
}

train::ParallelOptions parallel_options(const BenchOptions& o) {
  using Overlap = train::ParallelOptions::Overlap;
  const std::map<std::string, Overlap> overlap{
      {"auto", Overlap::Auto}, {"thread", Overlap::Thread}, {"steps", Overlap::Steps}};
  const std::map<std::string, parallel::Wire> wire{
      {"f32", parallel::Wire::Exact}, {"bf16", parallel::Wire::BF16}, {"f16", parallel::Wire::F16}};
  return {.share_weights = o.share_weights,
          .wire = wire.at(o.wire),
          .overlap = overlap.at(o.overlap),
          .late_updates = true};
}

struct Result {
  std::int64_t global_batch = 0;
  int ranks = 0, threads = 0;
  std::vector<double> seconds;  // of the timed steps, ascending
  // Seconds of rank 0 per step, ascending: until its last gradient, after that, and while the network was busy.
  std::vector<double> computing, waiting, network;
  std::int64_t network_bytes = 0;         // that rank 0 sends in a step
  double peak_mib = 0, expected_mib = 0;  // memory of the rank that has most

  double rate() const { return static_cast<double>(global_batch) / median(seconds); }
};

// Without the warm-up.
void time_steps(train::Trainer& trainer, const data::Batch& batch, double rate, const BenchOptions& o, Result& result) {
  for (int i = 0; i < o.warmup + o.steps; ++i) {
    const auto start = std::chrono::steady_clock::now();
    trainer.step(batch, rate);
    if (i == 0 && o.first_step && trainer.world().rank == 0) {
      fmt::print("first step done\n");
      std::fflush(stdout);
    }
    if (i < o.warmup) continue;
    const parallel::StepTimes& times = trainer.times();
    result.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    result.computing.push_back(times.compute);
    result.waiting.push_back(times.waiting + times.earlier);
    result.network.push_back(1e-9 * static_cast<double>(times.traffic.network_ns));
    result.network_bytes = times.traffic.sent;
  }
  for (auto* seconds : {&result.seconds, &result.computing, &result.waiting, &result.network})
    std::ranges::sort(*seconds);
}

void print_json(const BenchOptions& o, const Result& r) {
  const nlohmann::ordered_json line{{"model", o.model},
                                    {"batch", o.batch},
                                    {"ranks", r.ranks},
                                    {"threads", r.threads},
                                    {"precision", o.precision},
                                    {"conv_math", o.conv_math},
                                    {"bits", o.bits},
                                    {"autotune", o.autotune},
                                    {"recompute", o.recompute},
                                    {"kernels", o.kernels},
                                    {"shards", o.shards},
                                    {"samples_per_second", r.rate()},
                                    {"median_ms", median(r.seconds) * 1e3},
                                    {"min_ms", r.seconds.front() * 1e3},
                                    {"max_ms", r.seconds.back() * 1e3},
                                    {"compute_ms", median(r.computing) * 1e3},
                                    {"waiting_ms", median(r.waiting) * 1e3},
                                    {"network_ms", median(r.network) * 1e3},
                                    {"network_bytes", r.network_bytes},
                                    {"wire", o.wire},
                                    {"overlap", o.overlap},
                                    {"steps", o.steps},
                                    {"peak_mib_per_rank", r.peak_mib},
                                    {"expected_mib_per_rank", r.expected_mib},
                                    {"cpu", host::cpu_info().model}};
  fmt::print("{}\n", line.dump());
}

void print_text(const BenchOptions& o, const Result& r) {
  fmt::print(
      "lockstep {} batch {} x {} ranks x {} threads {}{}: {:.1f} samples/s, step {:.2f} ms (min {:.2f}, max {:.2f}), "
      "peak {:.0f} MiB a rank (expected {:.0f})\n",
      o.model, o.batch, r.ranks, r.threads, o.precision, o.shards > 0 ? fmt::format(", {} shards", o.shards) : "",
      r.rate(), median(r.seconds) * 1e3, r.seconds.front() * 1e3, r.seconds.back() * 1e3, r.peak_mib, r.expected_mib);
}

void run(const BenchOptions& o, const comm::Communicator& comm) {
  const host::ThreadBudget threads = host::budget(comm.local_size(), o.threads, 0);
  apply(threads);
  const bench::Subject subject = bench::make_subject(o.model, o.precision == "f64" ? DType::F64 : DType::F32);
  const data::Batch batch = bench::random_batch(subject, {.per_rank = o.batch, .shards = o.shards}, comm);
  const std::size_t before = host::process_memory().resident;
  train::Trainer trainer(comm, *subject.network, subject.function, subject.fields,
                         {.global_batch = batch.step.global_size,
                          .shards = o.shards,
                          .accumulate = o.accumulate,
                          .precision = o.precision == "f64" ? DType::F64 : DType::F32,
                          .rule = optim::sgd({.momentum = subject.momentum}),
                          .update = {.weight_decay = subject.weight_decay},
                          .parallel = parallel_options(o),
                          .guards = train::GuardOptions::none(),  // the step alone
                          .compile = compile_options(o),
                          .autotune = o.autotune});
  if (o.profile) trainer.start_profile();
  Result result{.global_batch = batch.step.global_size, .ranks = comm.size(), .threads = threads.compute};
  time_steps(trainer, batch, subject.rate, o, result);
  const auto most_mib = [&](std::size_t bytes) {
    return comm.allreduce(static_cast<double>(bytes) / 1048576, comm::ReduceOp::Max);
  };
  result.peak_mib = most_mib(host::process_memory().peak);
  result.expected_mib = most_mib(before + trainer.bytes());
  if (!comm.is_root()) return;
  if (o.profile) fmt::print("{}", train::profile_table(trainer.profile()->result()));
  o.json ? print_json(o, result) : print_text(o, result);
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions o;
  CLI::App app("Times training steps: mpirun -n 2 bench_step resnet20 --batch 64");
  app.add_option(
         "model", o.model,
         "a model of the zoo (`lockstep models` lists them), or unet-2d, unet-3d, cosmoflow, lstm, fno, gpt, dlrm")
      ->capture_default_str();
  app.add_option("--batch", o.batch, "samples per rank")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--shards", o.shards, "shards of the global batch over all ranks; 0: one per rank")
      ->capture_default_str();
  app.add_option("--accumulate", o.accumulate, "micro-batches per step")->capture_default_str();
  app.add_option("--precision", o.precision, "f32, f64, or bf16 beside f32 parameters")
      ->check(CLI::IsMember({"f32", "f64", "bf16"}))
      ->capture_default_str();
  app.add_option("--conv-math", o.conv_math, "fast, accurate: of Winograd only F(2x2), or exact: no Winograd")
      ->check(CLI::IsMember({"fast", "accurate", "exact"}))
      ->capture_default_str();
  app.add_option("--bits", o.bits, "fast, or portable: kernels with the same bits on every processor")
      ->check(CLI::IsMember({"fast", "portable"}))
      ->capture_default_str();
  app.add_flag("--autotune", o.autotune, "measure which kernels are fastest, before the first step; kept nowhere");
  app.add_option("--recompute", o.recompute, "what backward computes again: none, norms or blocks")
      ->check(CLI::IsMember({"none", "norms", "blocks"}))
      ->capture_default_str();
  app.add_option("--kernels", o.kernels, "a set of kernels to ask first")
      ->check(CLI::IsMember({"generic", "native", "onednn"}));
  app.add_option("--steps", o.steps, "timed steps")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--warmup", o.warmup, "steps before them")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("--threads", o.threads, "compute threads per rank; 0: the cores it may use")->capture_default_str();
  app.add_option("--wire", o.wire, "what gradients are rounded to on their way")
      ->check(CLI::IsMember({"f32", "bf16", "f16"}))
      ->capture_default_str();
  app.add_option("--overlap", o.overlap, "who moves messages on: thread, steps, or auto, decided in the first 10 steps")
      ->check(CLI::IsMember({"auto", "thread", "steps"}))
      ->capture_default_str();
  app.add_flag("!--no-share-weights", o.share_weights, "every rank keeps weights of its own");
  app.add_flag("--sync-bn", o.sync_bn, "batch norms normalise by all ranks' samples");
  app.add_flag("--profile", o.profile, "where the steps' time went, by class and node, against the machine's peaks");
  app.add_flag("--first-step", o.first_step, "a line when the first step is done");
  app.add_flag("--json", o.json, "one JSON object instead of a line");
  CLI11_PARSE(app, argc, argv);
  if (o.bits == "portable" && (o.precision == "bf16" || o.autotune)) {
    fmt::print(stderr,
               "bench_step: --bits portable with --precision bf16 or --autotune, expected neither: both depend on the "
               "processor\n");
    return 2;
  }
  host::apply_process_settings(comm::launched_local_ranks(), o.threads > 0 ? o.threads : host::environment_threads(),
                               argv);
  const comm::Environment mpi;
  const comm::Communicator world = comm::Communicator::world();
  try {
    run(o, world);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_step: rank {}: {}\n", world.rank(), error.what());
    comm::abort_job(1);
  }
}
