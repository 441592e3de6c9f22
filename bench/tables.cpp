// Times the steps of sparse tables alone, without a network: lookups of the rows that a batch names, their gradients,
// the exchange between ranks and the update. Prints the median of each part, on rank 0, and of the step, of the rank
// that takes longest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>

#include "bench/timing.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/core/random.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/host/threads.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/tables/table_engine.h"

using namespace lockstep;

namespace {

struct BenchOptions {
  std::int64_t tables = 26, rows = 100'000, width = 16, batch = 2048, per_sample = 1;
  std::string rule = "rowwise-adagrad", placement = "hash", exchange = "auto";
  double exponent = 0;  // 0: all rows alike
  std::int64_t hot_rows = 0;
  int steps = 50, threads = 1;
  bool shard = false, messages = false;
};

using Ids = std::vector<std::vector<std::int64_t>>;  // by table

// Row r is used about as often as (r + 1)^-exponent.
Ids random_ids(const BenchOptions& o, std::int64_t samples, RandomStream& random) {
  Ids ids(static_cast<std::size_t>(o.tables));
  for (auto& of_table : ids) {
    for (std::int64_t i = 0; i < samples * o.per_sample; ++i) {
      const double u = random.uniform(), most = static_cast<double>(o.rows);
      const double at = o.exponent == 0 ? u * most
                        : o.exponent == 1
                            ? std::exp(u * std::log(most + 1)) - 1
                            : std::pow(1 + u * (std::pow(most + 1, 1 - o.exponent) - 1), 1 / (1 - o.exponent)) - 1;
      of_table.push_back(std::min(static_cast<std::int64_t>(at), o.rows - 1));
    }
  }
  return ids;
}

class Bench {
 public:
  Bench(const BenchOptions& o, const comm::Communicator& comm)
      : options_(o), comm_(comm), memory_(comm, domains(), true) {
    const std::map<std::string, optim::RowRule> rules{{"sgd", optim::RowRule::Sgd},
                                                      {"adagrad", optim::RowRule::Adagrad},
                                                      {"rowwise-adagrad", optim::RowRule::AdagradRowwise},
                                                      {"adam", optim::RowRule::Adam},
                                                      {"ftrl", optim::RowRule::Ftrl}};
    const auto initialize = [](const Shape&, std::span<double> values, RandomStream& random) {
      for (double& v : values) v = random.uniform() - 0.5;
    };
    tables_.resize(static_cast<std::size_t>(o.tables), {.rows = o.rows, .width = o.width, .initialize = initialize});
    parallel::TableEngine::Setup setup{.seed = 1};
    for (Table& table : tables_) setup.tables.push_back({fmt::format("table{}", setup.tables.size()), &table});
    setup.options.rules.all.rule = rules.at(o.rule);
    setup.options.shard = o.shard;
    setup.options.placement = o.placement == "range" ? parallel::RowPlacement::Range : parallel::RowPlacement::Hash;
    setup.options.hot_rows = o.hot_rows;
    setup.options.exchange = o.exchange == "auto"   ? parallel::TableExchange::Auto
                             : o.exchange == "rows" ? parallel::TableExchange::Rows
                                                    : parallel::TableExchange::Blocks;
    engine_ = parallel::TableEngine::make(comm, world(), memory_, setup);
    RandomStream random(7, static_cast<std::uint64_t>(comm.rank()));
    const std::int64_t samples = part_of(o.batch, comm.size(), comm.rank()).size();
    for (int b = 0; b < kBatches; ++b) batches_.push_back(random_ids(o, samples, random));
    values_.resize(static_cast<std::size_t>(samples * o.per_sample * o.width));
    for (float& g : values_) g = static_cast<float>(random.normal());
    gradient_ = values_;
  }

  void run() {
    for (int s = 0; s < kWarmup + options_.steps; ++s) step(s);
    // A step is over when the slowest rank has made it.
    for (double& seconds : seconds_["step"]) seconds = comm_.allreduce(seconds, comm::ReduceOp::Max);
    if (!comm_.is_root()) return;
    fmt::print("{}\n", engine_->describe());
    for (const char* part : {"ids", "lookup", "gradient", "exchange", "update", "step"}) {
      const std::vector<double>& times = seconds_[part];
      fmt::print("{:10} {:8.3f} ms (min {:.3f})\n", part, median(times) * 1e3, *std::ranges::min_element(times) * 1e3);
    }
    fmt::print("{:.0f} samples/s; peak {} MiB on rank 0\n",
               static_cast<double>(options_.batch) / median(seconds_["step"]), host::process_memory().peak >> 20);
  }

 private:
  static constexpr int kBatches = 8, kWarmup = 12;

  parallel::WorldLayout world() const { return {comm_.rank(), comm_.size(), 0}; }
  parallel::Domains domains() const {
    return options_.messages ? parallel::Domains::single_ranks(comm_.rank(), comm_.size())
                             : parallel::Domains::nodes(comm_.topology(), comm_.rank(), comm_.size());
  }
  std::vector<parallel::TableUse> uses(int s) const {
    std::vector<parallel::TableUse> all;
    const Ids& ids = batches_[static_cast<std::size_t>(s % kBatches)];
    for (std::size_t t = 0; t < tables_.size(); ++t)
      all.push_back({&tables_[t], ids[t].data(), DType::I64, static_cast<std::int64_t>(ids[t].size())});
    return all;
  }
  void step(int s) {
    using Clock = std::chrono::steady_clock;
    comm_.barrier();
    const auto began = Clock::now();
    auto since = began;
    const auto note = [&](const char* part, Clock::time_point from) {
      const auto now = Clock::now();
      if (s >= kWarmup) seconds_[part].push_back(std::chrono::duration<double>(now - from).count());
      since = now;
    };
    const Ids& ids = batches_[static_cast<std::size_t>(s % kBatches)];
    engine_->begin_step();
    if (engine_->is_sharded()) {
      if (s == 0) engine_->announce(uses(0));
      engine_->begin_lookups(uses(s), false);
      engine_->announce(uses(s + 1));
    }
    note("ids", since);
    engine_->begin_shard();
    engine_->begin_pass(static_cast<int>(tables_.size()), true);
    for (std::size_t t = 0; t < tables_.size(); ++t) engine_->lookup(tables_[t], ids[t], values_.data());
    note("lookup", since);
    for (std::size_t t = 0; t < tables_.size(); ++t) engine_->add_gradient(tables_[t], ids[t], gradient_.data());
    engine_->end_shard();
    engine_->end_passes();
    note("gradient", since);
    engine_->open(false);
    while (!engine_->is_reduced()) engine_->advance();
    note("exchange", since);
    engine_->update({.update = {.learning_rate = 0.01, .gradient_scale = 1e-3, .count = s + 1}, .has_samples = true});
    note("update", since);
    engine_->settle();
    note("step", began);
  }

  BenchOptions options_;
  const comm::Communicator& comm_;
  parallel::NodeMemory memory_;
  std::vector<Table> tables_;
  std::shared_ptr<parallel::TableEngine> engine_;
  std::vector<Ids> batches_;
  std::vector<float> values_, gradient_;
  std::map<std::string, std::vector<double>> seconds_;
};

}  // namespace

int main(int argc, char** argv) {
  BenchOptions o;
  CLI::App app("Times the steps of sparse tables: mpirun -n 2 bench_tables --shard");
  app.add_option("--tables", o.tables, "tables")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rows", o.rows, "rows of a table")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--width", o.width, "elements of a row")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--batch", o.batch, "samples over all ranks")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--per-sample", o.per_sample, "ids of a sample and table")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--exponent", o.exponent, "row r is used as often as (r + 1)^-X")->capture_default_str();
  app.add_option("--rule", o.rule, "update rule of rows")
      ->check(CLI::IsMember({"sgd", "adagrad", "rowwise-adagrad", "adam", "ftrl"}))
      ->capture_default_str();
  app.add_option("--placement", o.placement, "of sharded rows")
      ->check(CLI::IsMember({"hash", "range"}))
      ->capture_default_str();
  app.add_option("--hot-rows", o.hot_rows, "replicas of sharded rows")->capture_default_str();
  app.add_option("--exchange", o.exchange, "form in which gradients travel")
      ->check(CLI::IsMember({"auto", "rows", "blocks"}))
      ->capture_default_str();
  app.add_option("--steps", o.steps, "timed steps")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--threads", o.threads, "threads per rank")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--shard", o.shard, "each row on one rank");
  app.add_flag("--messages", o.messages, "ranks do not share memory: each has its own tables");
  CLI11_PARSE(app, argc, argv);
  host::apply_process_settings(comm::launched_local_ranks(), o.threads, argv);
  const comm::Environment mpi;
  const comm::Communicator world = comm::Communicator::world();
  try {
    apply(host::budget(world.local_size(), o.threads, 0));
    Bench(o, world).run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_tables: rank {}: {}\n", world.rank(), error.what());
    comm::abort_job(1);
  }
}
