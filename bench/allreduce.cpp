// Times allreduces by size and path, and the reduction and update of a training step, beside the bandwidth of memory
// (STREAM's triad) in the same run: mpirun -n 2 bench_allreduce. Rounds alternate between the paths and the
// triad. Bytes that count are those that must move: each rank's buffer read once and written once. Prints JSON lines
// for bench/results, or lines for people.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/timing.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/launch.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/host/threads.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/parallel/exchange/allreduce.h"
#include "lockstep/parallel/gradient_engine.h"

using namespace lockstep;

namespace {

struct BenchOptions {
  std::vector<std::int64_t> kib{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 102400, 262144};
  std::int64_t parameters = 25'000'000;
  int rounds = 9;
  bool json = false, update = false;
};

struct Contender {
  std::string name;
  std::function<void()> run;
  std::vector<double> seconds = {};
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Seconds of the slowest rank per run, when all ranks begin together.
double time_once(const comm::Communicator& comm, int repeats, const std::function<void()>& run) {
  comm.barrier();
  const double start = now();
  for (int i = 0; i < repeats; ++i) run();
  return comm.allreduce(now() - start, comm::ReduceOp::Max) / repeats;
}

void time_all(const comm::Communicator& comm, std::vector<Contender>& contenders, int rounds) {
  std::vector<int> repeats;
  for (Contender& c : contenders) {
    c.run();
    repeats.push_back(std::clamp(static_cast<int>(1e-3 / time_once(comm, 1, c.run)), 1, 200));
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < contenders.size(); ++i)
      contenders[i].seconds.push_back(time_once(comm, repeats[i], contenders[i].run));
  }
  for (Contender& c : contenders) std::ranges::sort(c.seconds);
}

// Memory of one rank's triad: a = b + s c, 24 bytes counted per element. McCalpin, "Memory bandwidth and machine
// balance in current high performance computers" (1995).
struct Triad {
  static constexpr std::size_t kElements = 16 << 20;
  static constexpr double kBytes = 24.0 * kElements;
  std::vector<double> a = std::vector<double>(kElements), b = std::vector<double>(kElements, 1.0), c = b;
  void run() {
    for (std::size_t i = 0; i < kElements; ++i) a[i] = b[i] + 3.0 * c[i];
  }
};

// The first of `contenders` is the triad.
void print(const comm::Communicator& comm, const BenchOptions& o, const nlohmann::ordered_json& row,
           const std::vector<Contender>& contenders, double bytes) {
  const auto median_of = [](const Contender& c) { return median(c.seconds); };
  const double stream = Triad::kBytes * comm.local_size() / median_of(contenders[0]) / 1e9;
  for (std::size_t i = 1; i < contenders.size() && comm.is_root(); ++i) {
    const Contender& c = contenders[i];
    const double median = median_of(c), speed = bytes / median / 1e9 / comm.node_count();
    nlohmann::ordered_json line = row;
    line.update({{"path", c.name},
                 {"ranks", comm.size()},
                 {"nodes", comm.node_count()},
                 {"median_us", median * 1e6},
                 {"min_us", c.seconds.front() * 1e6},
                 {"max_us", c.seconds.back() * 1e6},
                 {"rounds", c.seconds.size()},
                 {"gb_per_second", speed},
                 {"stream_gb_per_second", stream},
                 {"of_stream", speed / stream},
                 {"cpu", host::cpu_info().model}});
    if (o.json) {
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:10} {:>10} {:14} {:12.1f} us (min {:.1f}, max {:.1f}) {:8.2f} GB/s, {:5.1f}% of STREAM\n",
                 line["row"].get<std::string>(), line.value("kib", std::int64_t{0}), c.name, median * 1e6,
                 c.seconds.front() * 1e6, c.seconds.back() * 1e6, speed, 100 * speed / stream);
    }
    std::fflush(stdout);
  }
}

void bench_sizes(const comm::Communicator& comm, const BenchOptions& o, Triad& triad) {
  parallel::Allreduce shared(comm), messages(comm, {.path = parallel::AllreducePath::Messages});
  const auto largest = static_cast<std::size_t>(std::ranges::max(o.kib)) << 10;
  const std::span<std::byte> window = shared.allocate(largest);
  std::vector<float> heap(largest / sizeof(float));
  for (const std::int64_t kib : o.kib) {
    const std::int64_t count = kib * 256;
    const comm::Buffer in_window(window.data(), count, comm::Element::F32);
    const comm::Buffer on_heap = comm::Buffer(heap).part(0, count);
    std::vector<Contender> contenders{
        {"triad", [&] { triad.run(); }},
        {"window", [&] { shared.allreduce(in_window, comm::ReduceOp::Sum); }},
        {"staged", [&] { shared.allreduce(on_heap, comm::ReduceOp::Sum); }},
        {"messages", [&] { messages.allreduce(on_heap, comm::ReduceOp::Sum); }},
        {"mpi", [&] { comm.allreduce(on_heap, comm::ReduceOp::Sum); }},
    };
    time_all(comm, contenders, o.rounds);
    const double bytes = 2.0 * 1024 * static_cast<double>(kib) * comm.size();
    print(comm, o, {{"row", "allreduce"}, {"kib", kib}}, contenders, bytes);
  }
}

// A model of `total` parameters in tensors of a few MiB, whose gradients are complete at once: a step consists of the
// reduction and the update.
class TrainingStep {
 public:
  TrainingStep(const comm::Communicator& comm, std::int64_t total)
      : world_(comm.rank(), comm.size(), 0),
        memory_(comm, parallel::Domains::nodes(comm.topology(), comm.rank(), comm.size()), true),
        parameters_(static_cast<std::size_t>((total + kTensor - 1) / kTensor)),
        rule_(optim::sgd({.momentum = 0.9})) {
    std::vector<NamedParameter> named;
    std::vector<const Parameter*> order;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].shape = Shape{std::min(kTensor, total - static_cast<std::int64_t>(i) * kTensor)};
      parameters_[i].initialize = [](const Shape&, std::span<double> v, RandomStream&) { std::ranges::fill(v, 1.0); };
      named.push_back({fmt::format("p{}", i), &parameters_[i]});
      order.push_back(&parameters_[i]);
    }
    store_ = std::make_unique<plan::ParameterStore>(
        named,
        plan::ParameterStoreOptions{.gradient_slots = world_.my_slots(), .optimizer_states = 1, .memory = &memory_});
    store_->allocate({}, order);
    updater_ = std::make_unique<parallel::Updater>(*store_, rule_, parallel::UpdaterOptions{.weight_decay = 1e-4});
    engine_ = std::make_unique<parallel::GradientEngine>(comm, world_, memory_, *store_, *updater_,
                                                         parallel::EngineOptions{});
  }

  void run() {
    engine_->begin_step({.samples = 1, .learning_rate = 0.1, .update = ++updates_});
    engine_->shard_sums()[parallel::kWeightSum] = engine_->shard_sums()[parallel::kSampleSum] =
        1;  // without samples nothing is updated
    engine_->sums_ready();
    for (const Parameter& p : parameters_) {
      engine_->retired(&p);
      engine_->poll();
    }
    engine_->end_shard();
    engine_->finish_step();
    engine_->settle();
  }

  // Gradients are zero, the decay alone moves the weights.
  void check_updated() {
    engine_->fence();
    for (const Parameter& p : parameters_) {
      const float value = static_cast<const float*>(store_->value(&p))[0];
      check(value > 0 && value < 1, "bench", "a weight is {} after {} updates, expected less than 1", value, updates_);
    }
  }

 private:
  static constexpr std::int64_t kTensor = 1 << 20;
  parallel::WorldLayout world_;
  parallel::NodeMemory memory_;
  std::vector<Parameter> parameters_;
  std::shared_ptr<optim::UpdateRule> rule_;
  std::unique_ptr<plan::ParameterStore> store_;
  std::unique_ptr<parallel::Updater> updater_;
  std::unique_ptr<parallel::GradientEngine> engine_;
  std::int64_t updates_ = 0;
};

// For each parameter the gradient of every rank is read, and its value and momentum are read and written once per node.
void bench_update(const comm::Communicator& comm, const BenchOptions& o, Triad& triad) {
  TrainingStep step(comm, o.parameters);
  const auto n = static_cast<std::size_t>(o.parameters);
  std::vector<float> gradient(n), value(n, 1.0F), momentum(n);
  const auto rule = optim::sgd({.momentum = 0.9});
  std::int64_t updates = 0;
  std::vector<Contender> contenders{{"triad", [&] { triad.run(); }},
                                    {"engine", [&] { step.run(); }},
                                    {"mpi, update in each", [&] {
                                       comm.allreduce(gradient, comm::ReduceOp::Sum);
                                       float* const states[] = {momentum.data()};
                                       rule->apply(o.parameters, value.data(), gradient.data(), states,
                                                   {.learning_rate = 0.1, .step = ++updates});
                                     }}};
  time_all(comm, contenders, o.rounds);
  step.check_updated();
  const double bytes = static_cast<double>(o.parameters) * (4.0 * comm.size() + 16.0 * comm.node_count());
  print(comm, o, {{"row", "update"}, {"parameters", o.parameters}}, contenders, bytes);
}

void run(const comm::Communicator& comm, const BenchOptions& o) {
  apply(host::budget(comm.local_size(), 1, 0));
  Triad triad;
  if (!o.update) bench_sizes(comm, o, triad);
  bench_update(comm, o, triad);
}

}  // namespace

int main(int argc, char** argv) {
  BenchOptions o;
  CLI::App app("Times allreduces: mpirun -n 2 bench_allreduce");
  app.add_option("--kib", o.kib, "sizes of one rank's buffer")->delimiter(',')->check(CLI::PositiveNumber);
  app.add_option("--parameters", o.parameters, "of reduce and update")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--rounds", o.rounds, "timed rounds")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_flag("--update", o.update, "reduce and update alone");
  app.add_flag("--json", o.json, "one JSON object a line");
  CLI11_PARSE(app, argc, argv);
  host::apply_process_settings(comm::launched_local_ranks(), 1, argv);
  const comm::Environment mpi;
  const comm::Communicator world = comm::Communicator::world();
  try {
    run(world, o);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_allreduce: rank {}: {}\n", world.rank(), error.what());
    comm::abort_job(1);
  }
}
