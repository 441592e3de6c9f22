#include "lockstep/train/run/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/core/log.h"
#include "lockstep/host/address_space.h"
#include "lockstep/host/process_memory.h"
#include "lockstep/nn/module.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/monitor/requests.h"
#include "lockstep/train/monitor/watchdog.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/run/announcement.h"
#include "lockstep/train/run/evaluation.h"
#include "lockstep/train/run/model_export.h"
#include "lockstep/train/run/prediction.h"
#include "lockstep/train/run/retention.h"
#include "lockstep/train/run/run_state.h"
#include "lockstep/train/run/standard_callbacks.h"
#include "lockstep/train/run/start.h"
#include "lockstep/train/run/tuning.h"

namespace lockstep::train {
namespace {

// Bytes. oneDNN 2.6 crashes if it is initialised without enough memory; a small model needs half as much.
constexpr std::size_t kKernelNeeds = std::size_t{32} << 20;

}  // namespace

Session::Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
                 data::Catalogue catalogue)
    : Session(comm, std::move(options), std::move(name), program, DataSource{.catalogue = catalogue}) {}

Session::Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
                 data::RunData data)
    : Session(comm, std::move(options), std::move(name), program, DataSource{.own = std::move(data)}) {}

Session::Session(const comm::Communicator& comm, Options options, std::string name, const std::string& program,
                 DataSource source)
    : comm_(comm), record_(std::make_unique<RunRecord>()), callbacks_(std::make_unique<CallbackList>()) {
  set_fault_rank(comm_.rank());
  facts_ =
      std::make_unique<RunFacts>(agree_on_run(comm_, std::move(options), std::move(name), program, std::move(source)));
  files_ = open_files(*facts_);
  tell(facts_->start, comm_);
  files_->log().to_file(fmt::format("the checks before the first step took {:.1f} ms", 1000 * facts_->start.seconds));
  watchdog_ = watch_ranks(*facts_, *files_, heartbeat_);
}

Session::~Session() = default;

const Options& Session::options() const { return facts_->options; }
const data::RunData& Session::data() const { return facts_->data; }

void Session::wait_for_others() {
  heartbeat_.enter(Heartbeat::Phase::Returned);
  heartbeat_.wait();
  comm_.barrier();
}

Callback& Session::add(std::unique_ptr<Callback> callback) {
  check(trainer_ == nullptr, "session", "add() after build(), expected before: build() lays out the control block");
  Callback& added = *callback;
  callbacks_->add(CallbackList::Stage::Program, std::move(callback));
  return added;
}

Trainer& Session::build(const nn::Module& module, const plan::ModelFunction& model) {
  const std::size_t before = host::process_memory().resident;
  comm::check_same(comm_, "the list of callbacks", callbacks_->description());
  comm::collectively(comm_, [&] { host::check_address_space("compiling the model", kKernelNeeds); });
  check_together(comm_, [&] { apply_tuning(facts_->options, module); });
  const bool predicts = facts_->options.purpose() == data::Purpose::Predict;
  trainer_ = make_trainer(*facts_, module, predicts ? prediction_alone(model) : model, heartbeat_, *callbacks_);
  trainer_->on_roll_back([this] { return state_ != nullptr && state_->roll_back(); });
  comm::collectively(comm_, [&] { course_ = std::make_unique<Course>(*facts_, *trainer_); });
  if (!facts_->trains()) {
    prepare_use(before);
    if (!facts_->options.onnx.empty()) check_together(comm_, [&] { export_model(parts(), module, model); });
    return *trainer_;
  }
  const CheckpointOptions& saving = facts_->options.checkpoints;
  Checkpoints::Settings settings{.full_tables_every = saving.full_tables_every,
                                 .table_copy_bytes = static_cast<std::size_t>(saving.table_copy_mb) << 20};
  check_together(comm_, [&] {
    course_->check_last_batch(*trainer_);
    settings.keep = retention(facts_->options, trainer_->metrics());
    is_higher_better("patience-metric", facts_->options.patience.metric, trainer_->metrics());
  });
  const RunParts parts = this->parts();
  const MemoryForecast memory = forecast_memory(parts, before);
  announce(parts, memory);
  state_ = std::make_unique<RunState>(parts, *callbacks_, std::move(settings));
  loop_.resumed_step = state_->resume(saving.resume);
  if (!facts_->options.weights.empty() && !loop_.resumed_step)
    load_weights(*facts_, *trainer_, head_to_replace(*facts_, module, model));
  io::FileDescriptor trace;
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    files_->set_metrics(trainer_->metrics());
    trace = take_output(*facts_, *files_, state_->checkpoints(), memory.checkpoint, loop_.resumed_step);
  });
  files_->log().to_file("this is run " + files_->run());
  add_standard_callbacks(*callbacks_, parts, std::move(trace), started_);
  if (loop_.resumed_step) state_->load_callbacks();
  trainer_->listen([this] { return callbacks_->requests() | course_->requests(); }, kStopRequests);
  trainer_->vote([list = callbacks_.get()](std::span<double> sums) { return list->vote(sums); });
  callbacks_->each([&](Callback& c) { c.begin_run(trainer_->updates()); });
  return *trainer_;
}

// Loads the weights of a run that trains nothing.
void Session::prepare_use(std::size_t before) {
  const RunParts parts = this->parts();
  check_together(comm_, [&] { check_use(parts); });
  announce(parts, forecast_memory(parts, before));
  load_weights(*facts_, *trainer_);
  add_evaluation_callbacks(*callbacks_, parts);
  callbacks_->each([&](Callback& c) { c.begin_run(trainer_->updates()); });
}

// Evaluates or predicts, once.
void Session::use_weights() {
  if (std::exchange(loop_.finished, true)) return;
  if (facts_->options.purpose() == data::Purpose::Predict) {
    if (!facts_->options.predict.empty()) write_predictions(parts());
  } else {
    run_evaluation(true, false);
  }
  heartbeat_.enter(Heartbeat::Phase::Ending);
  callbacks_->each([&](Callback& c) { c.end_run({.step = trainer_->updates(), .trained = false}); });
}

RunParts Session::parts() { return {*facts_, *files_, heartbeat_, *record_, *course_, *trainer_}; }

bool Session::done() const { return course_->is_done(trainer_->updates()); }

int Session::status() const {
  if (loop_.finished) return 0;
  return loop_.stopped && (!done() || record_->evaluation_due) ? kExitStopped : 0;
}

bool Session::next_epoch() {
  check(trainer_ != nullptr, "session", "next_epoch() before build(), expected after it");
  if (!facts_->trains()) {
    use_weights();
    return false;
  }
  if (!loop_.stopped) make_up();
  if (loop_.stopped || done()) return end();
  const data::SamplerPosition at = course_->position();
  loop_.epoch = at.epoch;
  loop_.first_step = trainer_->updates() - course_->step_in_epoch();
  loop_.began = true;
  callbacks_->each([&](Callback& c) { c.begin_epoch({.step = trainer_->updates(), .epoch = at.epoch + 1}); });
  return true;
}

// Makes up a due evaluation, which belongs to the epoch that has ended, or to the present one.
void Session::make_up() {
  const data::SamplerPosition at = course_->position();
  const std::int64_t ended = at.offset == 0 ? at.epoch - 1 : at.epoch;
  Orders orders;
  callbacks_->each([&](Callback& c) {
    c.make_up({.step = trainer_->updates(), .epoch = ended + 1, .whole = at.offset == 0, .run_ends = done()}, orders);
  });
  agree(OrderPoint::BeforeEpoch, orders);
  if (orders.evaluates()) {
    loop_.epoch = ended;
    state_->checkpoints().outdate();  // the last checkpoint's record contains a due evaluation
    run_evaluation(true, true);
  }
  carry_out(orders);
}

// Ends the run. Returns false, or true if the run rolled back and continues from an earlier step.
bool Session::end() {
  heartbeat_.enter(Heartbeat::Phase::Ending);
  if (!loop_.began)
    log()->info("nothing to train: {} updates and {:.2f} epochs are done", trainer_->updates(), course_->epochs_done());
  if (state_->checkpoints().is_unsaved() && facts_->saves_by_itself()) {
    state_->save();
    if (!loop_.stopped && !done()) return next_epoch();  // rolled back
  }
  state_->checkpoints().finish();
  files_->keep();  // for ranks whose last keep() was before rank 0 created the folder again
  log()->info("memory: at most {:.0f} MiB resident on this rank",
              static_cast<double>(host::process_memory().peak) / 1048576);
  if (const std::int64_t replaced = facts_->data.replaced(); replaced > 0)
    log()->warn("data: {} reads of unreadable samples on this rank gave other samples", replaced);
  callbacks_->each([&](Callback& c) { c.end_run({.step = trainer_->updates(), .trained = loop_.began}); });
  if (const std::int64_t skipped = trainer_->skipped(); skipped > 0 && comm_.is_root())
    log()->warn("guard: {} of this run {} skipped", skipped == 1 ? "1 update" : fmt::format("{} updates", skipped),
                skipped == 1 ? "was" : "were");
  state_->checkpoints().name_best();
  if (status() == kExitStopped) log()->info("stopped after a checkpoint; continue with --resume auto");
  return false;
}

Session::Batches Session::batches() { return Batches(*this); }

// Fetches the next batch of the epoch; returns false if there is none or the run stops.
bool Session::advance(data::Batch& batch) {
  if (!batch.names.empty()) course_->recycle(std::move(batch));
  batch = {};
  if (course_->position().epoch != loop_.epoch || done() || loop_.stopped) return false;
  loop_.rate = course_->rate();
  callbacks_->each([](Callback& c) { c.before_batch(); });
  batch = course_->next();
  announce_next();
  return true;
}

// Names the next batch early where its ids have to travel.
void Session::announce_next() {
  const parallel::TableOptions& tables = facts_->options.trainer.tables;
  if (!tables.shard || callbacks_->changes_batches() || course_->is_done(trainer_->updates() + 1)) return;
  static const data::Batch none;  // a batch that cannot be read: other ranks announce theirs
  if (course_->stream() != nullptr) return;
  const data::Batch* const next = course_->peek();
  trainer_->announce(next != nullptr ? *next : none);
}

void Session::report(const Totals& step) {
  if (step.outcome == StepOutcome::RolledBack) return;
  if (!course_->take_step(step.samples, trainer_->requests())) return;  // the streams have ended
  if (callbacks_->needs_settled_weights()) trainer_->settle();
  const std::int64_t now = trainer_->updates();
  const Orders orders = callbacks_->after_step({.step = now,
                                                .epoch = loop_.epoch + 1,
                                                .step_in_epoch = now - loop_.first_step,
                                                .totals = step,
                                                .learning_rate = loop_.rate,
                                                .epoch_ends = course_->position().epoch > loop_.epoch,
                                                .run_ends = done()},
                                               trainer_->requests(), trainer_->sums());
  // A rank without orders goes on: the control block of its next step tells ranks that have orders.
  if (orders.bits() != 0 || trainer_->communicates_in_passes()) agree(OrderPoint::AfterStep, orders);
  carry_out(orders);
}

void Session::finish_epoch() {
  Orders orders;
  const EpochEvent event{.step = trainer_->updates(),
                         .epoch = loop_.epoch + 1,
                         .whole = course_->position().epoch > loop_.epoch,
                         .run_ends = done(),
                         .stream_ended = course_->ended_within_epoch(),
                         .learning_rate = loop_.rate};
  callbacks_->each([&](Callback& c) { c.end_epoch(event, orders); });
  if (event.stream_ended)
    state_->checkpoints().outdate();  // that of the last step has neither this end nor its mean of weights
  agree(OrderPoint::EndOfEpoch, orders);
  if (loop_.stopped) return;
  if (orders.evaluates()) {
    if (!trainer_->verify()) return;  // rolled back: the epoch may not be the last one now
    run_evaluation(true, false);
  }
  if (loop_.stopped) return;
  carry_out(orders);
  // A checkpoint of the last step was written before its evaluation.
  if (orders.evaluates() && state_->checkpoints().is_outdated()) state_->save();
  if (!orders.saves()) files_->keep();
}

Totals Session::evaluate() {
  if (facts_->options.purpose() == data::Purpose::Predict) return {};
  agree(OrderPoint::OwnEvaluation, {});
  return run_evaluation(false, false);
}

Totals Session::run_evaluation(bool scheduled, bool makes_up) {
  const Evaluation found = evaluate_sets(parts(), *callbacks_, makes_up);
  const EvaluationEvent event{.step = trainer_->updates(),
                              .epoch = loop_.epoch + 1,
                              .totals = found.totals,
                              .more = found.more,
                              .learning_rate = loop_.rate,
                              .seconds = found.seconds,
                              .scheduled = scheduled,
                              .requests = trainer_->requests()};
  Orders orders;
  callbacks_->each([&](Callback& c) { c.after_evaluation(event, orders); });
  if (scheduled && found.totals.whole && facts_->trains() && state_->checkpoints().saved_step() == event.step)
    state_->checkpoints().outdate();  // its record has this evaluation as due
  agree(OrderPoint::AfterEvaluation, orders);
  carry_out(orders);
  return found.totals;
}

// Ranks that carried out different orders would wait for each other.
void Session::agree(OrderPoint point, const Orders& orders) { trainer_->agree(order_word(point, orders.bits())); }

// Carries out the orders of callbacks. A request that arrives while the checkpoint is copied is answered by that
// checkpoint: the state is the same.
void Session::carry_out(const Orders& orders) {
  if (!facts_->trains()) return;  // there is nothing to save or to stop
  loop_.stopped = loop_.stopped || orders.stops();
  loop_.finished = loop_.finished || orders.finishes();
  const bool asked = !orders.reasons().empty();
  if (orders.saves() || (asked && state_->checkpoints().is_unsaved())) state_->save();
  if (!asked) return;
  forget_requests(kCheckpointRequests);
  log()->info("{}: checkpoint of step {}{}", joined(orders.reasons(), ", "), state_->checkpoints().saved_step(),
              loop_.finished  ? ", ending"
              : status() != 0 ? ", stopping"
                              : "");
}

}  // namespace lockstep::train
