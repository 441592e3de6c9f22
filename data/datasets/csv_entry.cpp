#include "data/datasets/csv_entry.h"

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/datasets/csv.h"
#include "data/datasets/csv_columns.h"
#include "data/datasets/field_checks.h"
#include "data/datasets/field_options.h"
#include "data/datasets/field_record.h"
#include "data/datasets/field_sets.h"
#include "data/datasets/fill_missing.h"
#include "data/datasets/prepare_fields.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kCsvEntrySite = "options";

using data::DatasetOptions;
using data::Purpose;
using data::RunData;

// The rule for missing cells. A prediction has a row for each record, so none is left out.
void set_missing(CsvOptions& csv, const DatasetOptions& o) {
  using data::MissingValues;
  const bool predicts = o.purpose == Purpose::Predict;
  if (o.fields.missing == MissingValues::Mean) csv.missing = std::numeric_limits<double>::quiet_NaN();
  csv.skip_missing = o.fields.missing != MissingValues::Error && !predicts;
  csv.advice = predicts ? "; a prediction needs all inputs, and --missing mean takes the mean of the column"
                        : "; --missing skip leaves such rows out, --missing mean takes the mean of a column of inputs";
}

// A line for the log; empty: nothing was missing.
std::string gaps_text(const CsvGaps& gaps) {
  if (gaps.left_out + gaps.replaced == 0) return "";
  std::string text = "values are missing:";
  if (gaps.left_out > 0) text += formatted(" {} rows are left out", gaps.left_out);
  if (gaps.replaced > 0)
    text += formatted("{} {} numbers are the means of their columns", gaps.left_out > 0 ? "," : "", gaps.replaced);
  return text + formatted("; the first is {}", gaps.first);
}

// Gives both sets the means in place of what is missing. Throws Error for a column without any number.
void fill_missing(RunData& data, const std::vector<double>& means, const std::vector<std::string>& columns) {
  check(means.size() == columns.size(), kCsvEntrySite,
        "--missing mean with weights of a run that recorded no means of its columns, expected one of this version");
  for (std::size_t c = 0; c < means.size(); ++c)
    check(!std::isnan(means[c]), kCsvEntrySite,
          "--missing mean: column '{}' has no number in the training samples, expected at least one; leave it out of "
          "--inputs",
          columns[c]);
  for (std::unique_ptr<data::Dataset>* set : {&data.train, &data.eval}) {
    if (*set)
      *set = std::make_unique<FilledDataset>(std::shared_ptr<const data::Dataset>(std::move(*set)), "input", means);
  }
}

// The facts that prepare_csv() takes from open_csv(), by way of PredictionFacts::record.
struct CsvFacts {
  std::vector<std::string> inputs{}, targets{};  // names of columns
  std::vector<double> means{};                   // of the inputs
};

// Those of the run that made the weights; empty: this run makes them.
CsvFacts known_facts(const DatasetOptions& o) {
  if (!is_known(o)) return {};
  const FieldRecord record = FieldRecord::parse(*o.record);
  CsvFacts facts;
  if (!record.inputs.empty()) {
    facts.inputs = record.inputs.front().columns;
    facts.means = record.inputs.front().means;
  }
  if (!record.targets.empty()) facts.targets = record.targets.front().columns;
  return facts;
}

// The means by which a run replaces missing inputs.
std::vector<double> input_means(const RunData& data) {
  return data.train->size() > 0 ? means_of(*data.train, "input") : std::vector<double>();
}

std::string text_of(const CsvFacts& facts) {
  return nlohmann::json{{"inputs", facts.inputs}, {"targets", facts.targets}, {"means", facts.means}}.dump(
      -1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The files for evaluation have the classes of those for training, and "*" stands for the same columns in both.
RunData open_csv(const DatasetOptions& o) {
  std::vector<std::string> classes;
  if (is_known(o)) classes = FieldRecord::parse(*o.record).class_names;
  CsvFacts known = known_facts(o), facts;
  CsvGaps gaps;
  RunData data = open_sets(o, [&](const DatasetOptions& options, const std::vector<std::string>& files) {
    CsvOptions csv{.files = files,
                   .dir = options.dir,
                   .inputs = columns_of_run(split_names("inputs", options.fields.inputs), known.inputs),
                   .targets = columns_of_run(targets_of(options), known.targets),
                   .dtype = options.floats};
    if (options.purpose != Purpose::Predict) csv.label = options.fields.label;
    csv.classes = classes;
    set_missing(csv, options);
    auto set = std::make_unique<CsvDataset>(std::move(csv));
    classes = set->class_names();
    if (facts.inputs.empty()) facts = {.inputs = set->input_names(), .targets = set->target_names()};
    if (!is_known(o)) known = facts;
    gaps.left_out += set->gaps().left_out;
    gaps.replaced += set->gaps().replaced;
    if (gaps.first.empty()) gaps.first = set->gaps().first;
    return set;
  });
  facts.means = is_known(o) ? known.means : input_means(data);
  if (o.fields.missing == data::MissingValues::Mean) fill_missing(data, facts.means, facts.inputs);
  data.labels.names = std::move(classes);
  data.prediction.record = text_of(facts);
  data.notes = gaps_text(gaps);
  return data;
}

void prepare_csv(RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  const auto facts = nlohmann::json::parse(data.prediction.record);
  FieldNames names{.inputs = {"input"},
                   .targets = {},
                   .input_columns = facts.at("inputs").get<std::vector<std::string>>(),
                   .target_columns = facts.at("targets").get<std::vector<std::string>>(),
                   .input_means = facts.at("means").get<std::vector<double>>()};
  if (o.purpose != Purpose::Predict) names.targets.emplace_back(o.fields.label.empty() ? "target" : "label");
  prepare_fields(data, o, comm, names);
}

}  // namespace

data::DatasetEntry csv_entry() {
  return {.name = "csv",
          .description = "rows of CSV tables: --files, and columns as --inputs, --targets or --label",
          .kind = data::DatasetKind::Fields,
          .open_all = open_csv,
          .prepare = prepare_csv,
          .check_options = check_files_options};
}

}  // namespace lockstep::datasets
