#include "lockstep/train/run/standard_callbacks.h"

#include <cstdlib>

#include "lockstep/comm/agreement.h"
#include "lockstep/train/callbacks/answer_signals.h"
#include "lockstep/train/callbacks/average_weights.h"
#include "lockstep/train/callbacks/beat.h"
#include "lockstep/train/callbacks/early_stop.h"
#include "lockstep/train/callbacks/epoch_meter.h"
#include "lockstep/train/callbacks/evaluate.h"
#include "lockstep/train/callbacks/log_events.h"
#include "lockstep/train/callbacks/log_hashes.h"
#include "lockstep/train/callbacks/log_rank_loss.h"
#include "lockstep/train/callbacks/lower_rate.h"
#include "lockstep/train/callbacks/profile_steps.h"
#include "lockstep/train/callbacks/report_evaluation.h"
#include "lockstep/train/callbacks/save_checkpoints.h"
#include "lockstep/train/callbacks/show_progress.h"
#include "lockstep/train/callbacks/time_limit.h"
#include "lockstep/train/callbacks/trace_steps.h"
#include "lockstep/train/callbacks/write_dllogger.h"
#include "lockstep/train/callbacks/write_facts.h"
#include "lockstep/train/callbacks/write_metrics.h"
#include "lockstep/train/callbacks/write_tensorboard.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/run/retention.h"
#include "lockstep/train/run/trials.h"

namespace lockstep::train {
namespace {

using Stage = CallbackList::Stage;

// Bytes per second of a slow file system: estimates the time of the first checkpoint.
constexpr double kSlowDisk = 100e6;

// Rank 0 alone has a clock, and may find an end of the job that is none.
std::unique_ptr<TimeLimit> time_limit(const RunParts& run, std::chrono::steady_clock::time_point began) {
  return comm::collectively(run.facts.comm, [&] {
    if (!run.facts.comm.is_root()) return std::make_unique<TimeLimit>();
    return std::make_unique<TimeLimit>(
        DeadlineOptions{.time = parse_run_time(run.facts.options.time.limit, run.facts.options.time.margin),
                        .began = began,
                        .checkpoint_seconds = static_cast<double>(run.trainer.state_bytes()) / kSlowDisk,
                        .variable = [](const std::string& name) {
                          const char* value = std::getenv(name.c_str());
                          return value == nullptr ? std::nullopt : std::optional<std::string>(value);
                        }});
  });
}

std::unique_ptr<LowerRate> lower_rate(const RunParts& run) {
  const optim::ScheduleOptions& o = run.facts.options.rate;
  const double least = o.minimum / optim::peak_rate(o, run.facts.global_batch());
  return std::make_unique<LowerRate>(o.plateau, least,
                                     [&course = run.course](double factor) { course.set_rate_factor(factor); });
}

// All options, the program's own among them, and the size of the job.
nlohmann::ordered_json parameters(const RunFacts& facts) {
  nlohmann::json values = to_json(facts.options);
  values.update(nlohmann::json::parse(facts.program));
  values["program"] = facts.name;
  values["world_size"] = facts.comm.size();
  values["total_batch_size"] = facts.global_batch();
  return nlohmann::ordered_json(values);
}

ProgressOptions progress_options(const RunParts& run) {
  const Options& o = run.facts.options;
  return {.epochs = o.epochs,
          .steps_per_epoch = run.course.steps_per_epoch(),
          .total_steps = run.course.total_steps(),
          .log_every = o.log_every};
}

void add_reports(CallbackList& list, const RunParts& run, io::FileDescriptor trace) {
  const RunFacts& facts = run.facts;
  const Options& o = facts.options;
  const auto add = [&](std::unique_ptr<Callback> callback) { list.add(Stage::Report, std::move(callback)); };
  const bool streams = run.course.stream() != nullptr;
  add(std::make_unique<Beat>(run.heartbeat, streams ? Heartbeat::Phase::Producing : Heartbeat::Phase::Loading));
  add(std::make_unique<EpochMeter>(run.record, run.trainer.metrics()));
  if (!o.trace.file.empty()) {
    const TraceSteps::Settings settings{facts.comm, run.heartbeat, run.trainer, o.trace.file, o.trace.steps};
    add(std::make_unique<TraceSteps>(settings, std::move(trace)));
  }
  const ProgressOptions progress = progress_options(run);
  add(std::make_unique<LogEvents>(run.trainer));
  add(std::make_unique<ShowProgress>(run.files.log(), progress));
  if (o.logging.rank_loss) add(std::make_unique<LogRankLoss>(run.trainer, run.files.log(), progress));
  add(std::make_unique<LogHashes>(facts.comm, run.trainer, run.files, o.hash_every));
  if (o.profile) add(std::make_unique<ProfileSteps>(run.trainer, facts.comm.is_root()));
  add(std::make_unique<WriteMetrics>(run.trainer, run.record, run.files, o.log_every));
  add(std::make_unique<WriteDllogger>(run.trainer, run.record, run.files, o.log_every, parameters(facts)));
  if (record_kinds(o.logging.records).tensorboard)  // on all ranks
    add(std::make_unique<WriteTensorboard>(run.trainer, run.files, parameters(facts)));
  add(std::make_unique<WriteFacts>(run.trainer, run.files, parameters(facts)));
}

}  // namespace

void add_standard_callbacks(CallbackList& list, const RunParts& run, io::FileDescriptor trace,
                            std::chrono::steady_clock::time_point began) {
  add_reports(list, run, std::move(trace));
  const Options& o = run.facts.options;
  const SaveCheckpoints::Every every{.epochs = o.checkpoints.every_epochs,
                                     .updates = o.checkpoints.every_steps,
                                     .minutes = run.facts.comm.is_root() ? o.checkpoints.every_minutes : 0};
  if (const std::int64_t first = o.trainer.average.swa_start; first > 0)
    list.add(Stage::Decide, std::make_unique<AverageWeights>(run.trainer, first));
  list.add(Stage::Decide, std::make_unique<Evaluate>(run.record, run.course.has_evaluation() ? o.eval_every : 0));
  if (o.rate.kind == optim::ScheduleOptions::Kind::Plateau) list.add(Stage::Decide, lower_rate(run));
  list.add(Stage::Decide,
           std::make_unique<EarlyStop>(o.patience.evaluations, o.patience.metric,
                                       is_higher_better("patience-metric", o.patience.metric, run.trainer.metrics())));
  if (o.trial.find_lr) list.add(Stage::Decide, find_rate(run));
  list.add(Stage::Decide, std::make_unique<AnswerSignals>());
  list.add(Stage::Decide, time_limit(run, began));
  list.add(Stage::Decide, std::make_unique<SaveCheckpoints>(every, run.record, began));
}

namespace {

// The data that are evaluated, as the lines of evaluations.jsonl say it.
std::vector<std::pair<std::string, std::string>> evaluated_data(const RunFacts& facts) {
  if (facts.own_data) return {{"dataset", facts.data.eval ? facts.data.eval->describe() : ""}};
  const data::DatasetOptions& o = facts.options.dataset;
  std::vector<std::pair<std::string, std::string>> data{{"dataset", o.name}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) data.emplace_back(name, value);
  };
  add("data_dir", o.dir.string());
  add("files", o.fields.files);
  add("eval_files", o.fields.eval_files);
  add("inputs", o.fields.inputs);
  return data;
}

}  // namespace

void add_evaluation_callbacks(CallbackList& list, const RunParts& run) {
  const RunFacts& facts = run.facts;
  list.add(Stage::Report, std::make_unique<LogEvents>(run.trainer));
  list.add(Stage::Report, std::make_unique<ShowProgress>(run.files.log(), progress_options(run)));
  list.add(Stage::Report,
           std::make_unique<ReportEvaluation>(facts.comm, ReportEvaluation::Settings{.output = facts.options.output,
                                                                                     .weights = facts.weights,
                                                                                     .step = facts.weights_step,
                                                                                     .data = evaluated_data(facts),
                                                                                     .prints = facts.options.json}));
}

}  // namespace lockstep::train
