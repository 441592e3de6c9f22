#include "lockstep/train/step/trainer.h"

#include <cmath>

#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/core/error.h"
#include "lockstep/train/prepare/batch_check.h"
#include "lockstep/train/step/trainer_parts.h"

namespace lockstep::train {

Trainer::Trainer(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
                 std::vector<data::Field> fields, TrainerOptions options)
    : parts_(std::make_unique<TrainerParts>(comm, module, model, std::move(fields), std::move(options))) {}

Trainer::~Trainer() = default;

const Totals& Trainer::step(const data::Batch& batch, double learning_rate) {
  if (batch.step.is_streamed()) return parts_->run_streamed(batch, learning_rate);
  parts_->require_ranks();
  const data::StepSamples& s = batch.step;
  const Range shards = world().my_shards();
  const std::int64_t begin = part_of(s.global_size, world().tree.shards(), shards.begin).begin;
  const std::int64_t end = part_of(s.global_size, world().tree.shards(), shards.end - 1).end;
  check_batch(s.global_size);
  parts_->or_poison([&] {
    check(s.local == Range{begin, end} && batch.samples() == end - begin, "trainer",
          "the batch has {} samples, [{}, {}) of {}; expected this rank's part, [{}, {})", batch.samples(),
          s.local.begin, s.local.end, s.global_size, begin, end);
    parts_->check_rate(learning_rate);
    BatchFeed::check_batch(batch);
  });
  return parts_->run_step({&batch, begin, s.global_size}, {.samples = static_cast<std::uint64_t>(s.global_size),
                                                           .position = parallel::position_word(s.epoch, s.offset),
                                                           .learning_rate = learning_rate});
}

void Trainer::announce(const data::Batch& batch) {
  const data::StepSamples& s = batch.step;
  parts_->runner.lookahead().expect({&batch, s.local.begin, s.global_size});
}

const Totals& Trainer::step(const std::optional<data::Batch>& streamed, double learning_rate) {
  const data::Batch none;
  return parts_->run_streamed(streamed ? *streamed : none, learning_rate);
}

void Trainer::check_batch(std::int64_t samples) const { parts_->prepared.check_batch(samples); }

Totals Trainer::evaluate(data::Loader& loader, const std::function<void(std::int64_t)>& progress) {
  parts_->require_ranks();
  parts_->runner.forget();  // the evaluation reuses the memory of the last step
  Heartbeat& heartbeat = parts_->prepared.heartbeat();
  heartbeat.enter(Heartbeat::Phase::Evaluating);
  Totals totals;
  parts_->agreed_or_poison([&] {
    parts_->state.averages().use(true);
    try {
      totals = parts_->evaluator.run(loader, progress);
    } catch (const comm::AgreedError&) {
      parts_->state.averages().use(false);
      throw;
    }
    parts_->state.averages().use(false);
    parts_->evaluator.explain(totals);
    return true;
  });
  heartbeat.enter(Heartbeat::Phase::Outside);
  return totals;
}

Tensor Trainer::predict(const data::Batch& batch) {
  parts_->require_ranks();
  parts_->engine.settle();  // other ranks of the node may still write their parts of the weights
  parts_->runner.forget();  // the prediction reuses the memory of the last step
  BatchFeed::check_batch(batch);
  check(batch.samples() > 0, "trainer", "a batch without samples, expected at least one to predict");
  const Range rows{0, batch.samples()};
  plan::Plan& plan = parts_->feed.plan(Mode::Eval, rows.size());
  parts_->feed.fill(plan, batch, rows, 0);
  run_on_rows(batch, rows, [&] { plan.run(); });
  return plan.prediction();
}

const OwnTotals& Trainer::own_totals() const { return parts_->runner.own_totals(); }

void Trainer::listen(std::function<std::uint64_t()> mine, std::uint64_t ends_evaluation) {
  parts_->votes.listen(std::move(mine), ends_evaluation);
}
std::uint64_t Trainer::requests() const { return parts_->votes.agreed(); }
void Trainer::vote(std::function<std::uint64_t(std::span<double> sums)> mine) { parts_->votes.vote(std::move(mine)); }

std::span<const double> Trainer::sums() const {
  return parts_->engine.sums().subspan(parallel::kOtherSums + parts_->prepared.nominal().sums(Mode::Train),
                                       options().sums);
}

data::DistributedSampler Trainer::sampler(const data::Dataset& dataset, const SamplingOptions& options) const {
  return data::DistributedSampler(
      {.size = options.order ? options.order->length() : dataset.size(),
       .global_batch = options.global_batch > 0 ? options.global_batch : parts_->options().global_batch,
       .shards = world().tree.shards(),
       .my_shards = world().my_shards(),
       .seed = parts_->options().seed,
       .shuffle = options.shuffle,
       .shuffle_block = options.shuffle_block,
       .remainder = options.remainder,
       .order = options.order});
}

void Trainer::start_profile() { parts_->runner.start_profile(); }
const StepProfile* Trainer::profile() const { return parts_->runner.profile(); }

void Trainer::before_update(std::function<double()> inspect) {
  check(inspect != nullptr, "trainer", "before_update() got an empty function, expected one that returns a factor");
  parts_->engine.before_update([parts = parts_.get(), inspect = std::move(inspect)] {
    parts->last_weight = parts->engine.sums()[parallel::kWeightSum];
    const double factor = inspect();
    check(std::isfinite(factor), "trainer", "the factor for the gradient of update {} is {}, expected a finite number",
          parts->state.updates() + 1, factor);
    return factor;
  });
}

void Trainer::on_roll_back(std::function<bool()> roll_back) {
  parts_->guard.memory().on_roll_back(std::move(roll_back));
}
void Trainer::agree(std::uint64_t orders) {
  if (world().size == 1) return;
  parts_->require_ranks();
  parts_->or_poison([&] { parts_->engine.agree(orders); });
}

bool Trainer::communicates_in_passes() const { return parts_->prepared.nominal().is_collective; }
std::vector<MetricRule> Trainer::metrics() const {
  std::vector<MetricRule> rules;
  for (const plan::PlanMetric& metric : parts_->prepared.nominal().metrics) rules.push_back(metric.rule);
  return rules;
}

bool Trainer::verify() {
  return parts_->agreed_or_poison([&] { return parts_->guard.memory().verify(); });
}
std::int64_t Trainer::skipped() const { return parts_->guard.gradient().skipped(); }

void Trainer::note_in(Trace* trace) {
  parts_->runner.note_in(trace);
  parts_->engine.note_in(trace);
  if (parts_->prepared.tables() != nullptr) parts_->prepared.tables()->note_in(trace);
}
const parallel::StepTimes& Trainer::times() const { return parts_->engine.times(); }

void Trainer::add_to_average() {
  parts_->require_ranks();
  parts_->or_poison([&] { parts_->state.averages().add(); });
}

std::int64_t Trainer::updates() const { return parts_->state.updates(); }
std::string Trainer::kernels() const { return parts_->prepared.kernels(); }
std::size_t Trainer::bytes() const {
  const parallel::TableEngine* tables = parts_->prepared.tables();
  return parts_->prepared.model().bytes() + (world().size > 1 ? parts_->engine.bytes() : 0) +
         (tables != nullptr ? tables->bytes() : 0);
}
std::size_t Trainer::state_bytes() const { return parts_->state.state_bytes(); }
const parallel::WorldLayout& Trainer::world() const { return parts_->world(); }
std::string Trainer::describe_parallel() const {
  return parts_->prepared.describe_parallel(parts_->driver.describe(parts_->engine));
}

void Trainer::settle() { parts_->engine.settle(); }
plan::CompiledModel& Trainer::model() {
  settle();
  return parts_->prepared.model();
}
const TrainerOptions& Trainer::options() const { return parts_->options(); }

Tensor Trainer::gradient(const std::string& parameter) {
  return parts_->state.gradient(parameter, parts_->last_weight);
}
Tensor Trainer::observed(const std::string& name) const { return parts_->runner.observed(name); }

checkpoint::LoadReport Trainer::load_weights(const std::filesystem::path& file,
                                             const checkpoint::LoadOptions& options) {
  return parts_->state.load_weights(file, options);
}

std::vector<io::NamedTensor> Trainer::state(bool wanted) {
  parts_->guard.memory().require_intact();
  return parts_->state.state(wanted);
}

std::unique_ptr<checkpoint::StateSnapshot> Trainer::make_snapshot() { return parts_->state.make_snapshot(); }
void Trainer::snapshot(checkpoint::StateSnapshot* into) {
  parts_->guard.memory().require_intact();
  parts_->state.snapshot(into);
}
void Trainer::snapshot(checkpoint::StateSnapshot* into, const TableSave& tables) {
  parts_->guard.memory().require_intact();
  parts_->state.snapshot(into, tables);
}
std::size_t Trainer::table_bytes() const { return parts_->state.tables().bytes(); }
std::size_t Trainer::changed_bytes() const { return parts_->state.tables().changed_bytes(); }

void Trainer::load(const std::vector<io::NamedTensor>& tensors, std::int64_t updates, bool weights_only) {
  parts_->state.load(tensors, updates, weights_only);
}
void Trainer::load(const io::TensorSource& of_root, const std::string& file, std::int64_t updates) {
  parts_->state.load(of_root, file, updates);
}

void Trainer::reset_rows(const Table& table, std::span<const std::int64_t> rows) {
  parallel::TableEngine* const tables = parts_->prepared.tables();
  check(tables != nullptr, "trainer", "rows of a sparse table are reset, and the model has none");
  tables->reset(table, rows);
}

std::uint64_t Trainer::weights_hash() { return parts_->state.weights_hash(); }
std::vector<TensorHash> Trainer::state_hashes() { return parts_->state.state_hashes(); }

}  // namespace lockstep::train
