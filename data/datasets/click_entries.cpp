#include "data/datasets/click_entries.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "data/datasets/click_bags.h"
#include "data/datasets/click_checks.h"
#include "data/datasets/click_columns.h"
#include "data/datasets/click_data.h"
#include "data/datasets/click_record.h"
#include "data/datasets/click_records.h"
#include "data/datasets/click_table.h"
#include "data/datasets/csv_columns.h"
#include "data/datasets/field_options.h"
#include "data/datasets/field_sets.h"
#include "data/datasets/hdf5_fields.h"
#include "data/datasets/npy_fields.h"
#include "data/datasets/prepare_fields.h"
#include "lockstep/core/error.h"
#include "lockstep/data/file_pattern.h"
#include "lockstep/data/file_source.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickEntriesSite = "options";

using data::DatasetOptions;
using data::Purpose;
using data::RunData;
using Files = std::vector<std::string>;

bool labelled(const DatasetOptions& o) { return o.purpose != Purpose::Predict; }

IdMapping mapping_of(const ClickSetOptions& o) {
  return o.hash_ids > 0 ? IdMapping::Hash : o.vocabulary > 0 ? IdMapping::Vocabulary : IdMapping::Direct;
}

// The options that define the samples of this set, as ClickRecord::options.
std::string defining(const ClickSetOptions& o, std::string_view set) {
  nlohmann::json options{{"hash-ids", o.hash_ids}, {"vocabulary", o.vocabulary}};
  ClickSetOptions values = o;
  for_click_options(values, [&](std::string_view name, const auto& value, const auto&...) {
    const bool of_drawn = name.starts_with("click-") && name != "click-eval-samples";
    const bool of_files = !name.starts_with("click-") && (name != "positive-rating" || set == "ratings");
    if (set == "clicks" ? of_drawn : of_files) options[std::string(name)] = value;
  });
  return options.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Names of columns travel from the sets to prepare() in this form; `places` are those of each field's bags, 0 for none.
ClickRecord opened(std::vector<std::string> dense, std::vector<std::string> ids, std::vector<std::int64_t> places,
                   const ClickSetOptions& o, std::string_view set) {
  if (std::ranges::all_of(places, [](std::int64_t n) { return n == 0; })) places.clear();
  return {.ids = {.mapping = mapping_of(o), .names = std::move(ids), .sizes = {}, .places = std::move(places)},
          .dense = std::move(dense),
          .options = defining(o, set)};
}

RunData open_synthetic(const DatasetOptions& o, const ClickSetOptions& set) {
  SyntheticClicksOptions train = set.synthetic, eval = set.synthetic;
  eval.samples = set.eval_samples;
  eval.split = data::Split::Eval;
  check(!train.wide || set.hash_ids > 0 || set.vocabulary > 0 || set.keeps_ids, kClickEntriesSite,
        "--click-wide makes ids of 63 bits, expected --hash-ids or --vocabulary, too");
  auto samples = std::make_unique<SyntheticClicks>(eval);
  RunData data;
  data.notes = formatted(
      "the best AUC of these {} evaluation samples is {:.5f}: that of the probabilities of which the "
      "labels were drawn",
      eval.samples, samples->best_auc());
  data.train = std::make_unique<SyntheticClicks>(train);
  data.eval = std::move(samples);
  std::vector<std::string> dense, ids;
  for (std::int64_t d = 0; d < train.dense; ++d) dense.push_back(formatted("x{}", d));
  for (std::int64_t f = 0; f < train.fields; ++f) ids.push_back(formatted("id{}", f));
  check(set.bags.empty(), kClickEntriesSite,
        "--bags is for other data sets than clicks, whose samples have one id of each field; expected none");
  ClickRecord record = opened(std::move(dense), std::move(ids), {}, set, o.name);
  if (record.ids.mapping == IdMapping::Direct)
    record.ids.sizes.assign(static_cast<std::size_t>(train.fields), train.ids);
  data.prediction.record = record.text();
  return data;
}

// The bags of the fields C1 to C26 become those of columns.
void name_criteo_bags(ClickTableOptions& form) {
  std::vector<std::string> fields;
  for (std::size_t f = 0; f < form.ids.size(); ++f) fields.push_back(formatted("C{}", f + 1));
  check_bags(form.bags, fields);
  for (ClickBag& bag : form.bags)
    bag.field = form.ids[static_cast<std::size_t>(std::ranges::find(fields, bag.field) - fields.begin())];
}

// Opens files as tables of text. "*" stands for the same columns in all files of a run.
RunData open_tables(const DatasetOptions& o, const ClickSetOptions& set, ClickTableOptions form) {
  ClickRecord known = is_known(o) ? ClickRecord::parse(*o.record) : ClickRecord();
  std::string record;
  form.texts = mapping_of(set) != IdMapping::Direct || set.keeps_ids;
  form.bags = parse_bags(set.bags);
  form.bag_separator = set.bag_separator.front();
  if (o.name == "criteo") name_criteo_bags(form);
  check(form.bag_separator != form.separator || form.bags.empty(), kClickEntriesSite,
        "--bag-separator is '{}', which stands between columns, too; expected another one", set.bag_separator);
  RunData data = open_sets(o, [&](const DatasetOptions& options, const Files& files) {
    ClickTableOptions table = form;
    table.files = files;
    table.dir = options.dir;
    table.dense = columns_of_run(form.dense, known.dense);
    table.ids = columns_of_run(form.ids, known.ids.names);
    auto opened_table = std::make_unique<ClickTable>(std::move(table));
    ClickRecord names =
        opened(opened_table->dense_names(), opened_table->id_names(), opened_table->id_places(), set, o.name);
    check_bags(form.bags, names.ids.names);
    if (o.name == "criteo") {  // the names that Criteo's description has
      for (std::size_t i = 0; i < names.dense.size(); ++i) names.dense[i] = formatted("I{}", i + 1);
      for (std::size_t i = 0; i < names.ids.names.size(); ++i) names.ids.names[i] = formatted("C{}", i + 1);
    }
    if (record.empty()) record = names.text();
    if (!is_known(o)) known = std::move(names);
    return opened_table;
  });
  data.prediction.record = record;
  return data;
}

// Whether the first record of Criteo's files has a label: test files have none.
bool criteo_has_label(const DatasetOptions& o) {
  const std::vector<std::filesystem::path> files = data::expand_files(split_names("files", o.fields.files), o.dir);
  data::FileSource file(files.front());
  std::vector<std::uint8_t> begin(std::size_t{1} << 16);
  begin.resize(file.read_some(begin));
  const ClickTableOptions bare = criteo_options(false);
  return std::count(begin.begin(), std::ranges::find(begin, '\n'), '\t') !=
         std::ssize(bare.dense) + std::ssize(bare.ids) - 1;
}

std::vector<std::string> inputs_of(const DatasetOptions& o) {
  return o.fields.inputs.empty() || o.fields.inputs == "none" ? Files() : split_names("inputs", o.fields.inputs);
}

ClickTableOptions table_options(const DatasetOptions& o, const ClickSetOptions& set) {
  return {
      .dense = inputs_of(o), .ids = split_names("ids", set.ids), .label = labelled(o) ? o.fields.label : std::string()};
}

// Opens arrays of files by `make`, which gets the names of arrays: dense numbers as inputs, then ids and the label.
RunData open_arrays(
    const DatasetOptions& o, const ClickSetOptions& set,
    const std::function<std::shared_ptr<data::Dataset>(const DatasetOptions&, const Files&, Files, Files)>& make) {
  std::string record;
  RunData data = open_sets(o, [&](const DatasetOptions& options, const Files& files) {
    Files dense = inputs_of(options), others = split_names("ids", set.ids);
    ClickColumnsOptions columns{
        .dense = dense.size(), .ids = others.size(), .bags = parse_bags(set.bags), .label = labelled(options)};
    std::ranges::copy(count_names(columns.bags), std::back_inserter(others));
    if (columns.label) others.push_back(options.fields.label);
    auto set_of_columns =
        std::make_unique<ClickColumns>(make(options, files, std::move(dense), std::move(others)), std::move(columns));
    record = opened(set_of_columns->dense_names(), set_of_columns->id_names(), set_of_columns->id_places(), set, o.name)
                 .text();
    return set_of_columns;
  });
  data.prediction.record = record;
  return data;
}

std::shared_ptr<data::Dataset> hdf5_arrays(const DatasetOptions& o, const std::vector<ClickBag>& bags,
                                           const Files& files, Files dense, Files others) {
  // The first array of ids is an input where no array is dense: an Hdf5Dataset has at least one.
  const std::size_t moved = dense.empty() ? 1 : 0;
  dense.insert(dense.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(moved));
  others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(moved));
  return std::make_shared<Hdf5Dataset>(Hdf5Options{
      .files = files, .dir = o.dir, .inputs = std::move(dense), .targets = std::move(others), .bags = bags});
}

std::shared_ptr<data::Dataset> numpy_arrays(const DatasetOptions& o, const Files& /*files*/, Files dense,
                                            Files others) {
  const std::size_t moved = dense.empty() ? 1 : 0;
  dense.insert(dense.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(moved));
  others.erase(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(moved));
  return std::make_shared<NpyDataset>(
      NpyOptions{.dir = o.dir, .inputs = std::move(dense), .targets = std::move(others)});
}

std::shared_ptr<data::Dataset> record_arrays(const DatasetOptions& o, const Files& files, Files dense, Files others) {
  std::ranges::copy(others, std::back_inserter(dense));
  return open_click_records(o, files, dense);
}

RunData open_record_sets(const DatasetOptions& o, const ClickSetOptions& set) {
  const ClickRecordNames named = name_click_records(o, set);
  return open_arrays(named.options, named.set, record_arrays);
}

// The options for sets of fields that no set of clicks reads, and `more`.
std::vector<std::string_view> ignored(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> names{"targets",       "sample-axis",  "spatial-axes",   "series",  "missing",
                                      "classes",       "ignore-index", "symmetry",       "vectors", "pseudovectors",
                                      "pseudoscalars", "noise",        "label-smoothing"};
  names.insert(names.end(), more);
  return names;
}

// The options of NumPy's arrays, whose names are paths.
DatasetOptions with_arrays_as_files(DatasetOptions o, const ClickSetOptions& set) {
  o.fields.files = set.ids;
  return o;
}

}  // namespace

std::vector<data::DatasetEntry> click_entries(const ClickSetOptions& set) {
  const auto prepare = [&set](RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
    prepare_clicks(data, o, comm, set);
  };
  const auto entry = [&](std::string name, std::string description, std::initializer_list<std::string_view> ignores,
                         std::function<RunData(const DatasetOptions&)> open,
                         std::function<void(const DatasetOptions&)> look) {
    return data::DatasetEntry{.name = std::move(name),
                              .description = std::move(description),
                              .kind = data::DatasetKind::Fields,
                              .ignores = ignored(ignores),
                              .open_all = std::move(open),
                              .prepare = prepare,
                              .check_options = std::move(look)};
  };
  const auto fixed = [&set](const DatasetOptions& o) { check_click_files(o, set, true); };
  const auto named = [&set](const DatasetOptions& o) { check_click_files(o, set, false); };
  return {
      entry(
          "clicks", "built in: drawn from a model whose best AUC is known",
          {"files", "eval-files", "eval-fraction", "inputs", "label"},
          [&set](const DatasetOptions& o) { return open_synthetic(o, set); },
          [&set](const DatasetOptions& o) { check_click_options(o, set); }),
      entry(
          "criteo", "Criteo's text files: a label, 13 counts and 26 ids with tabs between them: --files",
          {"inputs", "label"},
          [&set](const DatasetOptions& o) {
            return open_tables(o, set, criteo_options(labelled(o) || criteo_has_label(o)));
          },
          fixed),
      entry(
          "ratings", "MovieLens' ratings.csv: --files", {"inputs", "label"},
          [&set](const DatasetOptions& o) { return open_tables(o, set, ratings_options(set.positive, labelled(o))); },
          fixed),
      entry(
          "csv", "columns of CSV tables: --files, --inputs, --ids, --label", {},
          [&set](const DatasetOptions& o) { return open_tables(o, set, table_options(o, set)); }, named),
      entry(
          "hdf5", "arrays of HDF5 files: --files, --inputs, --ids, --label", {},
          [&set](const DatasetOptions& o) {
            return open_arrays(
                o, set,
                [bags = parse_bags(set.bags)](const DatasetOptions& of, const Files& files, Files dense, Files others) {
                  return hdf5_arrays(of, bags, files, std::move(dense), std::move(others));
                });
          },
          named),
      entry(
          "arrays", "NumPy's .npy and .npz files: --inputs a.npy, --ids b.npz/name, --label", {"files", "eval-files"},
          [&set](const DatasetOptions& o) { return open_arrays(with_arrays_as_files(o, set), set, numpy_arrays); },
          [&set](const DatasetOptions& o) { check_click_files(with_arrays_as_files(o, set), set, false); }),
      entry(
          "records", "packed by `lockstep pack` of any of these: --data-dir, or --files", {},
          [&set](const DatasetOptions& o) { return open_record_sets(o, set); },
          [&set](const DatasetOptions& o) { check_click_records(o, set); }),
  };
}

}  // namespace lockstep::datasets
