// The effects of each callback of the reports at each event, one by one: the files of the run that change, the log, the
// average of the weights, the profile, the buffer of a vocabulary.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "lockstep/checkpoint/output_folder.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/plan/parameter_store.h"
#include "lockstep/train/callbacks/average_weights.h"
#include "lockstep/train/callbacks/grow_vocabulary.h"
#include "lockstep/train/callbacks/log_events.h"
#include "lockstep/train/callbacks/log_hashes.h"
#include "lockstep/train/callbacks/profile_steps.h"
#include "lockstep/train/callbacks/report_evaluation.h"
#include "lockstep/train/callbacks/show_progress.h"
#include "lockstep/train/callbacks/trace_steps.h"
#include "lockstep/train/callbacks/write_dllogger.h"
#include "lockstep/train/callbacks/write_facts.h"
#include "lockstep/train/callbacks/write_metrics.h"
#include "lockstep/train/callbacks/write_tensorboard.h"
#include "lockstep/train/report/trace_file.h"
#include "tests/mpi/training.h"

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;
using namespace train;

constexpr data::VocabularyOptions kVocabulary{.fields = 1, .rows = 4};

Task averaged() {
  Task task;
  task.options.average.swa_start = 1;
  return task;
}

RunFiles::Settings settings_in(const fs::path& folder) {
  return {.output = folder.string(),
          .quiet = true,
          .hash_every = 1,
          .log_level = LogLevel::Debug,
          .records = {.dllogger = true, .tensorboard = true}};
}

// A run without a session: its trainer and its files.
class RunRig {
 public:
  explicit RunRig(const fs::path& folder) : folder_(folder), files(world(), settings_in(folder)) {
    vocabulary.is_integer = true;
    store.allocate({}, {});
    record.epoch = {.epoch = 0, .loss = 4, .weight = 8, .samples = 8};
    comm::collectively(world(), [&] {
      const std::string run = "0123456789abcdef";
      files.set_run(run);
      if (!world().is_root()) return;
      files.folder().begin(run);
      files.set_metrics({});
      files.open(files.folder().folder(), std::nullopt);
    });
  }

  // The contents of the files and buffers on rank 0, by name.
  std::map<std::string, std::string> look() {
    std::map<std::string, std::string> seen;
    for (const io::NamedTensor& tensor : trainer().state()) {
      if (tensor.name == "average/count") seen["average"] = std::to_string(tensor.tensor.data<double>()[0]);
    }
    seen["profile"] = trainer().profile() == nullptr ? "" : "on";
    const Tensor vocabulary_state = store.read("vocabulary");
    for (const std::int64_t number : vocabulary_state.data<std::int64_t>())
      seen["vocabulary"] += " " + std::to_string(number);
    if (!world().is_root()) return seen;
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (!entry.is_regular_file() || entry.path().filename().string().starts_with(".lock")) continue;
      if (entry.path().filename() != "rank-0000.log" && entry.path().parent_path().filename() == "logs") continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      const bool events = entry.path().string().find("tensorboard") != std::string::npos;
      seen[events                                       ? "tensorboard"
           : entry.path().filename() == "rank-0000.log" ? "log"
                                                        : entry.path().filename()] += text.str();
    }
    return seen;
  }

  Trainer& trainer() { return *rig_.trainer; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  data::Batch ids() const {
    data::Batch batch{.names = {"raw_ids", "ids"}};
    batch.fields.push_back(Tensor::from<std::int64_t>(Shape{1, 1}, std::vector<std::int64_t>{70 + world().rank()}));
    batch.fields.emplace_back(Shape{1, 1}, DType::I32);
    return batch;
  }

 private:
  fs::path folder_;
  Rig rig_{world(), averaged()};

 public:
  RunFiles files;
  RunRecord record;
  Heartbeat heartbeat;
  Parameter vocabulary{
      .shape = Shape{data::Vocabulary::state_size(kVocabulary)}, .initialize = nn::constant(0), .role = Role::Buffer};
  plan::ParameterStore store{{{"vocabulary", &vocabulary}}, {}};
};

// Calls each function, in the order of a run that trains two updates, the third and the fourth; `note` is called with
// the event after each.
void run_events(Callback& callback, const std::function<void(const std::string&)>& note) {
  Orders orders;
  const Totals totals{.loss = 0.5, .weight = 8, .samples = 8};
  std::vector<double> sums;
  std::uint64_t bits = 0;
  StepVote vote(sums, bits, 0, 0);
  callback.begin_run(0);
  note("begin_run");
  callback.begin_epoch({.step = 2, .epoch = 1});
  note("begin_epoch");
  callback.before_batch();
  callback.vote(vote);
  note("vote");
  callback.after_step({.step = 3, .step_in_epoch = 1, .totals = totals}, orders);
  note("after_step");
  callback.after_step({.step = 4, .step_in_epoch = 2, .totals = totals, .epoch_ends = true}, orders);
  note("last step of an epoch");
  callback.before_evaluation({.samples = 8});
  callback.evaluated(8);
  note("evaluated");
  callback.after_evaluation({.step = 4, .totals = totals, .seconds = 1, .scheduled = true}, orders);
  note("after_evaluation");
  callback.after_evaluation({.step = 4, .totals = totals, .seconds = 1}, orders);
  note("evaluation by the program");
  callback.end_epoch({.step = 4, .epoch = 1, .whole = true}, orders);
  note("end_epoch");
  callback.end_epoch({.step = 4, .epoch = 1, .whole = true, .stream_ended = true}, orders);
  note("end of a stream");
  callback.before_checkpoint(4);
  note("before_checkpoint");
  callback.after_checkpoint({.step = 4});
  note("after_checkpoint");
  callback.rolled_back(3);
  note("rolled_back");
  callback.end_run({.step = 4});
  note("end_run");
  EXPECT_EQ(orders.bits(), 0u) << "a report orders nothing";
}

struct Row {
  std::string name;
  std::function<std::unique_ptr<Callback>(RunRig&)> make;
  // The names of what changes, on rank 0; events without a change are not there.
  std::map<std::string, std::string> effects;
};

std::vector<Row> reports() {
  const nlohmann::ordered_json options{{"seed", 1}};
  return {
      {"log_events",
       [](RunRig& run) { return std::make_unique<LogEvents>(run.trainer()); },
       {{"begin_run", "log"},
        {"begin_epoch", "log"},
        {"evaluated", "log"},
        {"after_evaluation", "log"},
        {"evaluation by the program", "log"},
        {"before_checkpoint", "log"},
        {"after_checkpoint", "log"},
        {"rolled_back", "log"},
        {"end_run", "log"}}},
      {"show_progress",
       [](RunRig& run) { return std::make_unique<ShowProgress>(run.files.log(), ProgressOptions{.log_every = 3}); },
       {{"after_step", "log"}, {"end_epoch", "log"}, {"end of a stream", "log"}}},
      {"log_hashes",
       [](RunRig& run) { return std::make_unique<LogHashes>(world(), run.trainer(), run.files, 4); },
       {{"begin_run", "hashes.jsonl"}, {"last step of an epoch", "hashes.jsonl"}}},
      {"profile_steps",
       [](RunRig& run) { return std::make_unique<ProfileSteps>(run.trainer(), world().is_root()); },
       {{"begin_run", "profile"}, {"end_run", "log"}}},
      {"write_metrics",
       [](RunRig& run) { return std::make_unique<WriteMetrics>(run.trainer(), run.record, run.files, 3); },
       {{"after_step", "metrics.jsonl tensorboard"},
        {"last step of an epoch", "metrics.jsonl tensorboard"},
        {"after_evaluation", "metrics.jsonl tensorboard"},
        {"end of a stream", "metrics.jsonl tensorboard"}}},
      {"write_dllogger",
       [=](RunRig& run) { return std::make_unique<WriteDllogger>(run.trainer(), run.record, run.files, 3, options); },
       {{"begin_run", "dllogger.json"},
        {"after_step", "dllogger.json"},
        {"last step of an epoch", "dllogger.json"},
        {"after_evaluation", "dllogger.json"},
        {"end of a stream", "dllogger.json"},
        {"end_run", "dllogger.json"}}},
      {"write_tensorboard",
       [=](RunRig& run) { return std::make_unique<WriteTensorboard>(run.trainer(), run.files, options); },
       {{"begin_run", "tensorboard"}, {"last step of an epoch", "tensorboard"}, {"end of a stream", "tensorboard"}}},
      {"write_facts",
       [=](RunRig& run) { return std::make_unique<WriteFacts>(run.trainer(), run.files, options); },
       {{"begin_epoch", "facts.json"}, {"end_run", "facts.json"}}},
      {"trace_steps",
       [](RunRig& run) {
         const std::string path = run.path("trace.json");
         const TraceSteps::Settings settings{world(), run.heartbeat, run.trainer(), path, 1};
         return std::make_unique<TraceSteps>(settings, world().is_root() ? open_trace(path) : io::FileDescriptor());
       },
       {{"last step of an epoch", "log trace.json"}}},
      {"average_weights",
       [](RunRig& run) { return std::make_unique<AverageWeights>(run.trainer(), 1); },
       {{"last step of an epoch", "average"}, {"end of a stream", "average"}}},
      {"report_evaluation",
       [](RunRig& run) {
         return std::make_unique<ReportEvaluation>(
             world(), ReportEvaluation::Settings{.output = run.path(""), .weights = "weights.h5"});
       },
       {{"after_evaluation", "evaluations.jsonl log"}}},
      {"grow_vocabulary",
       [](RunRig& run) {
         auto callback = std::make_unique<GrowVocabulary>(
             GrowVocabulary::Setup{.options = kVocabulary,
                                   .buffer = "vocabulary",
                                   .store = [&run]() -> plan::ParameterStore& { return run.store; }},
             world());
         data::Batch batch = run.ids();
         callback->grow(batch);
         return callback;
       },
       {{"after_evaluation", "log"}, {"evaluation by the program", "log"}, {"before_checkpoint", "vocabulary"}}},
  };
}

TEST(CallbackEvents, EachReportChangesWhatItIsForAndNothingElse) {
  for (const Row& row : reports()) {
    const SharedDirectory shared;
    RunRig run(shared.path() / "run");
    const std::unique_ptr<Callback> callback = row.make(run);
    std::map<std::string, std::string> before = run.look(), effects;
    run_events(*callback, [&](const std::string& event) {
      std::map<std::string, std::string> now = run.look();
      for (const auto& [name, content] : now) {
        if (const auto old = before.find(name); old != before.end() && old->second == content) continue;
        effects[event] += (effects[event].empty() ? "" : " ") + name;
      }
      before = std::move(now);
    });
    if (world().is_root()) {
      EXPECT_EQ(effects, row.effects) << row.name;
    }
    world().barrier();
  }
}

}  // namespace
}  // namespace lockstep::test
