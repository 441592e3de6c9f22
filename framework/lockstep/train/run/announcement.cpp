#include "lockstep/train/run/announcement.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/comm/environment.h"
#include "lockstep/core/log.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/host/process_settings.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/options/options_table.h"
#include "lockstep/train/run/placement.h"
#include "lockstep/train/state/table_state.h"

namespace lockstep::train {
namespace {

// "digits: 12000 training and 2000 evaluation samples, 10 classes".
std::string data_line(const RunFacts& facts) {
  const data::RunData& data = facts.data;
  std::string text = facts.options.dataset.name;
  if (data.stream) {
    text = data.stream->description;
    const StreamingOptions& o = facts.options.stream;
    if (o.reservoir.capacity > 0)
      text += fmt::format(", of which each rank keeps {} samples, {:.0f}% of a batch", o.reservoir.capacity,
                          100 * o.reservoir.replay);
    text += data.eval ? fmt::format(", {} evaluation samples", data.eval->size()) : ", no evaluation";
  } else {
    text += fmt::format(": {} training", data.train->size());
    text += data.eval ? fmt::format(" and {} evaluation samples", data.eval->size()) : " samples, no evaluation";
    if (!facts.trains())
      text = fmt::format("{}: {} samples to {}", facts.options.dataset.name, data.predicted().size(),
                         facts.options.purpose() != data::Purpose::Predict ? "evaluate"
                         : facts.options.predict.empty()                   ? "take an example from"
                                                                           : "predict");
  }
  for (const auto& [name, set] : data.more_eval) text += fmt::format(", {} of {}", set->size(), name);
  if (const std::int64_t batches = facts.options.trial.overfit_batches; batches > 0)
    text += fmt::format(" (both the first {} global batches, in order, without augmentation)", batches);
  if (data.classes() > 0) text += fmt::format(", {} classes", data.classes());
  if (facts.options.dataset.resize > 0) text += fmt::format(", images resized to {}", data.image_shape().str());
  if (data.classes() > 0) return text;
  for (const data::Field& field : data.fields()) text += fmt::format(", {} {}", field.name, field.shape.str());
  return text;
}

std::size_t bytes_of(const data::Dataset& set) {
  std::size_t sample = 0;
  for (const data::Field& field : set.fields()) sample += field.bytes();
  return sample * static_cast<std::size_t>(set.size());
}

// The largest number of bytes of the cache; a store of samples is in memory already.
std::size_t cached_bytes(const RunFacts& facts) {
  std::size_t all = 0;
  for (const data::Dataset* set : {facts.data.train.get(), facts.data.eval.get()}) all += set ? bytes_of(*set) : 0;
  for (const auto& [name, set] : facts.data.more_eval) all += bytes_of(*set);
  return std::min(all, static_cast<std::size_t>(facts.options.dataset.samples.cache_mb) << 20);
}

}  // namespace

MemoryForecast forecast_memory(const RunParts& run, std::size_t before) {
  Trainer& trainer = run.trainer;
  MemoryForecast memory{.before = before, .model = trainer.bytes(), .plan = trainer.model().arena().bytes()};
  // Each rank has written its rows of sparse tables, also where the ranks of a node see one copy.
  const std::size_t rows = trainer.table_bytes() / static_cast<std::size_t>(run.facts.comm.size());
  const std::size_t known = before + trainer.model().bytes() + rows, resident = host::process_memory().resident;
  memory.kernels = resident > known ? resident - known : 0;
  memory.batches = run.course.bytes() + cached_bytes(run.facts);
  const bool saves = run.facts.comm.is_root() && run.facts.saves_by_itself();
  // The copy of the tensors, and the memory that HDF5 allocates at its first use (5 MiB with 1.10.8).
  constexpr std::size_t kHdf5 = 5 << 20;
  if (saves) memory.checkpoint = trainer.state_bytes() + kHdf5;
  // Larger tables pass through memory piece by piece, as gathered, in their order, and on their way into the file.
  const std::size_t tables = trainer.table_bytes();
  if (saves && tables > static_cast<std::size_t>(run.facts.options.checkpoints.table_copy_mb) << 20)
    memory.checkpoint -= tables - std::min(tables, 3 * TableState::kPieceElements * sizeof(double));
  return memory;
}

void announce(const RunParts& run, const MemoryForecast& memory) {
  const RunFacts& facts = run.facts;
  const comm::Communicator& comm = facts.comm;
  const host::ThreadBudget& threads = facts.threads;
  std::int64_t elements = 0;
  for (const NamedParameter& p : run.trainer.model().parameters().parameters()) {
    if (p.parameter->role != Role::Buffer) elements += p.parameter->shape.elements();
  }
  const host::CpuInfo cpu = host::cpu_info();
  const std::string mpi = comm::Environment::library();  // name and version, then details of the build
  const auto logger = log();
  logger->info("{}: {} {} on {} {}, {} thread{} + {} loader{} each; {} ({}), {}", facts.name, comm.size(),
               comm.size() == 1 ? "rank" : "ranks", comm.node_count(), comm.node_count() == 1 ? "host" : "hosts",
               threads.compute, threads.compute == 1 ? "" : "s", threads.loaders, threads.loaders == 1 ? "" : "s",
               cpu.model, cpu.instructions, mpi.substr(0, mpi.find(',')));
  logger->info("hosts: {}", host_list(comm));
  const std::string undone = host::undone_binding();
  logger->info("cores: {}{}{}", placement_summary(comm, threads), undone.empty() ? "" : "; ", undone);
  const std::string shards =
      facts.options.trainer.shards > 0 ? fmt::format(" in {} shards", facts.options.trainer.shards) : "";
  logger->info("model: {} parameters, {}; global batch {}{}, {} updates per epoch", elements,
               run.trainer.model().options().bf16 ? "bf16" : name_of(facts.dtype), facts.global_batch(), shards,
               run.course.steps_per_epoch());
  logger->info("memory: {}", memory.str());
  logger->info("gradients: {}", run.trainer.describe_parallel());
  logger->info("data: {}", data_line(facts));
  if (!facts.data.notes.empty()) logger->info("data: {}", facts.data.notes);
  if (const double usual = facts.options.usual_warm_up; usual > 0 && facts.trains() && !facts.options.trial.find_lr)
    logger->info("rate: --warmup-epochs is {}, all of --epochs; the default of {} would be longer than the run",
                 facts.options.rate.warmup_epochs, usual);
  const optim::AverageOptions& average = facts.options.trainer.average;
  if (average.ema > 0) logger->info("average: evaluations are of the weights' moving average, --ema {}", average.ema);
  if (average.swa_start > 0)
    logger->info("average: evaluations are of the weights' mean over the ends of epochs from {} on", average.swa_start);
  Options options = facts.options;
  for (const OptionRow& row : option_rows(options)) {
    const auto variable = options.from_environment.find(row.name);
    if (variable != options.from_environment.end())
      logger->info("environment: --{} {} is from {}", row.name, value_text(row), variable->second);
  }
}

}  // namespace lockstep::train
