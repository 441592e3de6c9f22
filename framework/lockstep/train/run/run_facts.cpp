#include "lockstep/train/run/run_facts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lockstep/checkpoint/retention.h"
#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/data/array_file.h"
#include "lockstep/data/wrap_sets.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/options/options_table.h"
#include "lockstep/train/report/json_text.h"
#include "lockstep/train/run/placement.h"
#include "lockstep/train/run/session_trainer.h"
#include "lockstep/train/run/trials.h"

namespace lockstep::train {
namespace {

// Opens the data set; an error also tells if its folder is that of an environment variable.
data::RunData open_data(data::Catalogue catalogue, const data::DatasetOptions& dataset, const Options& options) {
  const auto variable = options.from_environment.find("data-dir");
  try {
    return data::open_data(catalogue, dataset);
  } catch (const Error& error) {
    if (variable == options.from_environment.end() || !data::find_dataset(catalogue, dataset.name).needs_dir) throw;
    throw Error(formatted("{}; --data-dir {} is from {}", error.what(), dataset.dir.string(), variable->second));
  }
}

// Finds the weights of a run that trains nothing, on rank 0. Returns the record of the data on which they were trained;
// empty: the file has none.
std::string find_weights(RunFacts& facts) {
  Options& o = facts.options;
  const comm::Communicator& comm = facts.comm;
  const std::string named = o.checkpoints.resume == "auto" ? o.output
                            : o.checkpoints.resume.empty() ? o.weights
                                                           : o.checkpoints.resume;
  checkpoint::WeightsSource source;
  comm::collectively(comm, [&] {
    if (comm.is_root()) source = checkpoint::find_weights(named);
  });
  o.weights = facts.weights = comm.broadcast_string(source.file.string());
  const nlohmann::json metadata = parse_json(comm.broadcast_string(source.metadata));
  if (!metadata.is_object()) return "";
  const auto step = metadata.find("step"), data = metadata.find("data");
  if (step != metadata.end() && step->is_number_integer()) facts.weights_step = step->get<std::int64_t>();
  return data != metadata.end() && data->is_object() ? data->dump() : "";
}

// Files that are evaluated or predicted are normalised as those were with which the model was trained. An entry without
// DatasetEntry::prepare normalises nothing.
void check_record(const data::DatasetEntry& entry, const data::DatasetOptions& o, const std::string& weights) {
  const bool raw = o.purpose == data::Purpose::Evaluate && o.fields.normalise == data::FieldScaling::None;
  check(o.record != nullptr || entry.kind != data::DatasetKind::Fields || !entry.prepare || raw, "weights",
        "{} has weights alone; expected a checkpoint, which also records the names, shapes and normalisation of the "
        "arrays with which the model was trained{}",
        weights, o.purpose == data::Purpose::Evaluate ? " (or --normalise none, if they were not normalised)" : "");
}

// Refuses options of a catalogue's data sets that have no effect on data of the caller's own.
void check_unused(const data::SampleOptions& o) {
  const auto unused = [](bool is_default, std::string_view option, std::string_view advice) {
    check(is_default, kOptionsSite, "--{} has no effect on the program's own data, expected its default: {}", option,
          advice);
  };
  constexpr std::string_view kSets = "choose samples in the RunData that the program passes";
  constexpr std::string_view kOrder = "set the order in the RunData that the program passes";
  unused(o.train_subset.empty(), "train-subset", kSets);
  unused(o.eval_subset.empty(), "eval-subset", kSets);
  unused(o.unreadable == data::Unreadable::Stop, "unreadable", "wrap the data sets that the program passes");
  unused(o.cache_mb == 0, "cache-mb", "wrap the data sets that the program passes");
  unused(!o.balanced, "balanced", kOrder);
  unused(o.weights.empty(), "sample-weights", kOrder);
}

// Of the data set that options name.
void open_named(RunFacts& facts, data::Catalogue catalogue, const std::string& record) {
  data::DatasetOptions dataset = facts.options.dataset;
  dataset.seed = facts.options.seed;
  dataset.floats = facts.dtype;
  dataset.purpose = facts.options.purpose();
  dataset.record = record.empty() ? nullptr : &record;
  check_together(facts.comm, [&] {
    if (!facts.trains()) check_record(data::find_dataset(catalogue, dataset.name), dataset, facts.weights);
  });
  comm::collectively(facts.comm, [&] { facts.data = open_data(catalogue, dataset, facts.options); });
  data::prepare_data(catalogue, dataset, facts.data, &facts.comm);
}

// Takes the caller's data.
void take_own(RunFacts& facts, data::RunData own) {
  facts.data = std::move(own);
  facts.own_data = true;
  comm::collectively(facts.comm, [&] {
    facts.data.check();
    const std::string& record = facts.data.prediction.record;
    check_unused(facts.options.dataset.samples);
    check(record.empty() || nlohmann::json::parse(record, nullptr, false).is_object(), "data",
          "PredictionFacts::record is '{}', expected the text of a JSON object", record);
    data::convert_floats(facts.data, facts.dtype);
  });
}

// Refuses a file that cannot hold the arrays of a prediction, where they are known before the first one.
void check_prediction(const RunFacts& facts) {
  const data::RunData& data = facts.data;
  if (facts.options.predict.empty()) return;
  const std::vector<std::string>& decoded = data.prediction.decoded;
  if (!decoded.empty()) data::check_array_count(facts.options.predict, decoded.size(), joined(decoded, ", "));
  if (data.prediction.decode || data.classes() == 0) return;
  data::check_array_count(facts.options.predict, 2, "class, probability");
}

// Refuses options that decide by evaluations in a run that has none.
void check_evaluated(const RunFacts& facts) {
  const Options& o = facts.options;
  if (!facts.trains() || facts.data.eval) return;
  check(o.patience.evaluations == 0, kOptionsSite,
        "--patience is {} without evaluation data, expected evaluation samples to look at", o.patience.evaluations);
  check(o.rate.kind != optim::ScheduleOptions::Kind::Plateau, kOptionsSite,
        "--schedule plateau without evaluation data, expected evaluation samples to look at");
  check(checkpoint::parse_retention(o.checkpoints.keep, kOptionsSite).best.empty(), kOptionsSite,
        "--keep {} without evaluation data, expected evaluation samples to compare checkpoints by", o.checkpoints.keep);
}

}  // namespace

RunFacts agree_on_run(const comm::Communicator& comm, Options options, std::string name, std::string program,
                      DataSource source) {
  RunFacts facts{.comm = comm,
                 .options = std::move(options),
                 .name = std::move(name),
                 .program = std::move(program),
                 .dtype = DType::F32};
  const Options& o = facts.options;
  facts.dtype = dtype_of(o.precision);
  check_together(comm, [&] {
    validate(o, comm.size());
    data::DatasetOptions dataset = o.dataset;
    dataset.purpose = o.purpose();
    if (!source.own) data::check_dataset(source.catalogue, dataset);
  });
  settle_trials(facts.options);
  facts.threads = share_threads(comm, o);
  facts.start = check_start(facts);
  apply(facts.threads);
  comm::collectively(comm, [&] {
    if (comm.is_root() && !o.predict.empty()) data::check_new_file(o.predict);
  });
  const std::string record = facts.trains() ? "" : find_weights(facts);
  if (source.own) {
    take_own(facts, *std::move(source.own));
  } else {
    open_named(facts, source.catalogue, record);
  }
  check_together(comm, [&] {
    if (facts.data.stream)
      validate_stream(o, comm.size());
    else
      validate_data(o, comm.size(), facts.data.epoch_samples());
  });
  check_together(comm, [&] {
    check_prediction(facts);
    limit_to_trial(facts);
    check_evaluated(facts);
  });
  check_data(facts);
  if (facts.trains()) data::store_samples(facts.data, o.dataset.samples, comm, std::max(1, facts.threads.loaders));
  return facts;
}

}  // namespace lockstep::train
