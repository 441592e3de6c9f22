#include "data/datasets/field_entries.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/datasets/csv.h"
#include "data/datasets/field_record.h"
#include "data/datasets/hdf5_fields.h"
#include "data/datasets/npy_fields.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/join_fields.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSite = "options";

using data::DatasetOptions;
using data::Field;
using data::Purpose;
using data::RunData;
using MakeSet =
    std::function<std::unique_ptr<data::Dataset>(const DatasetOptions&, const std::vector<std::string>& files)>;

std::vector<std::string> files_of(const DatasetOptions& o) { return split_names("files", o.fields.files); }

// The arrays of the targets, which predictions do not need.
std::vector<std::string> targets_of(const DatasetOptions& o) {
  return o.purpose == Purpose::Predict ? std::vector<std::string>() : split_names("targets", o.fields.targets);
}

void check_fields_options(const DatasetOptions& o) {
  check(o.fields.eval_fraction < 1 || o.purpose != Purpose::Train, kSite,
        "--eval-fraction is {}, expected less than 1: 1 is for --evaluate-only", o.fields.eval_fraction);
  check(!o.fields.inputs.empty() && (!o.fields.targets.empty() || o.purpose == Purpose::Predict), kSite,
        "--inputs is '{}' and --targets is '{}', expected the names of arrays in the files, separated by commas",
        o.fields.inputs, o.fields.targets);
  check(!o.augment && o.resize == 0, kSite, "--augment and --resize are for images, and {} has none", o.name);
}

void check_files_options(const DatasetOptions& o) {
  check_fields_options(o);
  check(!o.fields.files.empty(), kSite, "--files is missing, expected files of {}, as in --files 'run*.h5'", o.name);
}

// One set for everything: nothing is trained.
RunData open_one(std::unique_ptr<data::Dataset> set) {
  const std::shared_ptr<const data::Dataset> shared = std::move(set);
  return {.train = std::make_unique<data::SharedDataset>(shared),
          .eval = std::make_unique<data::SharedDataset>(shared)};
}

// The sets for training and evaluation: of different files, or parts of the same ones.
RunData open_sets(const DatasetOptions& o, const MakeSet& make) {
  if (o.purpose == Purpose::Predict) return open_one(make(o, files_of(o)));
  if (o.purpose == Purpose::Evaluate && !o.fields.eval_files.empty())
    return open_one(make(o, split_names("eval-files", o.fields.eval_files)));
  if (o.purpose == Purpose::Evaluate && o.fields.eval_fraction == 1) return open_one(make(o, files_of(o)));
  RunData data;
  data.train = make(o, files_of(o));
  if (!o.fields.eval_files.empty()) {
    data.eval = make(o, split_names("eval-files", o.fields.eval_files));
  } else if (o.fields.eval_fraction > 0) {
    auto parts =
        data::split_dataset(std::move(data.train), {1 - o.fields.eval_fraction, o.fields.eval_fraction}, o.seed);
    data.train = std::move(parts[0]);
    data.eval = std::move(parts[1]);
    check(data.train->size() > 0 && data.eval->size() > 0, kSite,
          "--eval-fraction is {}, which leaves {} training and {} evaluation samples, expected at least one each",
          o.fields.eval_fraction, data.train->size(), data.eval->size());
  }
  return data;
}

bool is_float(const Field& field) { return field.dtype == DType::F32 || field.dtype == DType::F64; }

bool is_known(const DatasetOptions& o) { return o.purpose != Purpose::Train && o.record != nullptr; }

// The number of spatial dimensions. Where fields differ in their dimensions, those with more have channels.
int spatial_axes(const DatasetOptions& o, const std::vector<Field>& fields) {
  if (o.fields.spatial_axes >= 0) return static_cast<int>(o.fields.spatial_axes);
  int least = fields.front().shape.rank();
  for (const Field& field : fields) least = std::min(least, field.shape.rank());
  const bool differ = std::ranges::any_of(fields, [&](const Field& f) { return f.shape.rank() != least; });
  return differ || least > 1 ? least : 0;  // one dimension alone is a row of features
}

std::vector<data::NormalisationOptions> wishes(const DatasetOptions& o, const std::vector<Field>& fields, int axes,
                                               const std::vector<std::string>& names) {
  std::vector<data::NormalisationOptions> wishes;
  for (const std::string& name : names) {
    const Field& field = fields[data::find_field(kSite, fields, name)];
    data::NormalisationOptions wish{.field = name, .channel_axis = field.shape.rank() > axes ? 0 : -1};
    wish.scaling = o.fields.normalise == "none"    ? data::Scaling::None
                   : o.fields.normalise == "range" ? data::Scaling::MinMax
                                                   : data::Scaling::MeanStd;
    if (o.fields.normalise == "log") wish.log_offset = o.fields.log_offset;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

// Names of the fields in their order: the sets have inputs first, then targets. Of a table, the columns of both.
struct Names {
  std::vector<std::string> inputs, targets, input_columns{}, target_columns{};
};

Names names_of(const DatasetOptions& o, const std::vector<Field>& fields) {
  const std::size_t inputs = split_names("inputs", o.fields.inputs).size();
  Names names;
  for (std::size_t i = 0; i < fields.size(); ++i) (i < inputs ? names.inputs : names.targets).push_back(fields[i].name);
  return names;
}

// The normalisation of these arrays: that of the run that made the weights, else measured.
data::Normalisation normalisation_for(const RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                                      const Names& names, int axes) {
  const std::vector<Field>& fields = data.train->fields();
  if (is_known(o)) {
    const auto find = [&] {
      return normalisation_of(FieldRecord::parse(*o.record), fields, names.inputs, names.targets);
    };
    return comm == nullptr ? find() : comm::collectively(*comm, find);
  }
  std::vector<std::string> all = names.inputs;
  all.insert(all.end(), names.targets.begin(), names.targets.end());
  const auto wanted = wishes(o, fields, axes, all);
  return comm == nullptr ? data::measure_normalisation(*data.train, wanted)
                         : data::measure_normalisation(*data.train, wanted, *comm);
}

// What a checkpoint records of data that is ready; `names`: without targets that are classes.
FieldRecord record_of(const RunData& data, const Names& names, int axes, data::Normalisation normalisation) {
  const std::vector<Field>& fields = data.train->fields();
  FieldRecord record{.inputs = recorded(fields, names.inputs, names.input_columns),
                     .targets = recorded(fields, names.targets, names.target_columns),
                     .spatial_axes = axes,
                     .normalisation = std::move(normalisation),
                     .input = data.shape_of("input"),
                     .predicted = data.fields(),
                     .classes = data.classes()};
  std::erase_if(record.predicted, [](const Field& field) { return field.name == "input"; });
  return record;
}

// Takes from the record of the run that made the weights what files without targets do not have.
void complete_for_prediction(RunData& data, const DatasetOptions& o) {
  check(is_known(o), kSite, "predictions of {} need the record of a checkpoint's data, and there is none", o.name);
  const FieldRecord record = FieldRecord::parse(*o.record);
  data.absent = absent_fields(record, data.shape_of("input"), o.floats);
  data.absent_classes = record.classes;
  if (!record.targets.empty()) data.decode = decoder(record);
}

void prepare_fields(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, Names names) {
  const std::vector<Field>& fields = data.train->fields();
  const bool classes = names.targets.size() == 1 &&
                       !is_float(fields[data::find_field(kSite, fields, names.targets[0])]) && data.classes() > 0;
  if (classes) names.targets.clear();
  std::vector<Field> spatial;
  for (const auto* list : {&names.inputs, &names.targets}) {
    for (const std::string& name : *list) spatial.push_back(fields[data::find_field(kSite, fields, name)]);
  }
  const int axes = is_known(o) ? FieldRecord::parse(*o.record).spatial_axes : spatial_axes(o, spatial);
  data::Normalisation normalisation = normalisation_for(data, o, comm, names, axes);
  data::Transforms transforms{std::make_shared<data::Normalise>(normalisation, o.floats),
                              std::make_shared<data::ConvertFloats>(o.floats)};
  const auto join = [&](const char* name, const std::vector<std::string>& all, int dimensions) {
    if (all.empty()) return;
    transforms.push_back(
        std::make_shared<data::JoinFields>(data::JoinOptions{.name = name, .fields = all, .spatial_axes = dimensions}));
  };
  join("input", names.inputs, axes);
  join("target", names.targets, axes);
  data.train_transforms = data.eval_transforms = transforms;
  if (o.purpose == Purpose::Predict) return complete_for_prediction(data, o);
  data.record = record_of(data, names, axes, std::move(normalisation)).text();
}

void prepare_named(RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  prepare_fields(data, o, comm, names_of(o, data.train->fields()));
}

std::unique_ptr<data::Dataset> make_hdf5(const DatasetOptions& o, const std::vector<std::string>& files) {
  return std::make_unique<Hdf5Dataset>(Hdf5Options{.files = files,
                                                   .dir = o.dir,
                                                   .inputs = split_names("inputs", o.fields.inputs),
                                                   .targets = targets_of(o),
                                                   .sample_axis = o.fields.sample_axis});
}

std::unique_ptr<data::Dataset> make_arrays(const DatasetOptions& o, const std::vector<std::string>& /*files*/) {
  return std::make_unique<NpyDataset>(NpyOptions{.dir = o.dir,
                                                 .inputs = split_names("inputs", o.fields.inputs),
                                                 .targets = targets_of(o),
                                                 .sample_axis = o.fields.sample_axis});
}

// The columns "*" of a table are those of the run that made the weights: another file may have further ones.
std::vector<std::string> csv_inputs(const DatasetOptions& o) {
  std::vector<std::string> names = split_names("inputs", o.fields.inputs);
  if (!is_known(o) || std::ranges::find(names, "*") == names.end()) return names;
  const FieldRecord record = FieldRecord::parse(*o.record);
  return record.inputs.empty() ? names : record.inputs.front().columns;
}

// Tells the names of the columns in RunData::record, from which prepare_csv() takes them.
RunData open_csv(const DatasetOptions& o) {
  std::string names;
  RunData data = open_sets(o, [&](const DatasetOptions& options, const std::vector<std::string>& files) {
    auto set = std::make_unique<CsvDataset>(CsvOptions{.files = files,
                                                       .dir = options.dir,
                                                       .inputs = csv_inputs(options),
                                                       .targets = targets_of(options),
                                                       .dtype = options.floats});
    names = nlohmann::json::array({set->input_names(), set->target_names()})
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return set;
  });
  data.record = names;
  return data;
}

void prepare_csv(RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  const auto columns = nlohmann::json::parse(data.record).get<std::vector<std::vector<std::string>>>();
  prepare_fields(
      data, o, comm,
      {.inputs = {"input"},
       .targets = o.purpose == Purpose::Predict ? std::vector<std::string>() : std::vector<std::string>{"target"},
       .input_columns = columns.at(0),
       .target_columns = columns.at(1)});
}

}  // namespace

std::vector<std::string> split_names(std::string_view option, std::string_view text) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  for (std::string& name : names) {
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    check(!name.empty(), kSite, "--{} is '{}', expected names with commas between them", option, text);
  }
  return names;
}

data::DatasetEntry hdf5_entry() {
  return {.name = "hdf5",
          .description = "arrays of HDF5 files: --files, --inputs, --targets",
          .takes_fields = true,
          .open_all = [](const DatasetOptions& o) { return open_sets(o, make_hdf5); },
          .prepare = prepare_named,
          .check_options = check_files_options};
}

data::DatasetEntry arrays_entry() {
  return {.name = "arrays",
          .description = "NumPy's .npy and .npz files: --inputs a.npy,b.npz/name, --targets",
          .takes_fields = true,
          .open_all =
              [](const DatasetOptions& o) {
                DatasetOptions with_files = o;  // names are paths here
                with_files.fields.files = o.fields.inputs;
                return open_sets(with_files, make_arrays);
              },
          .prepare = prepare_named,
          .check_options =
              [](const DatasetOptions& o) {
                check_fields_options(o);
                check(o.fields.files.empty() && o.fields.eval_files.empty(), kSite,
                      "--files and --eval-files are for other data sets; of arrays, expected paths in --inputs and "
                      "--targets, and --eval-fraction");
              }};
}

data::DatasetEntry csv_entry() {
  return {.name = "csv",
          .description = "rows of CSV tables: --files, and columns as --inputs and --targets",
          .takes_fields = true,
          .open_all = open_csv,
          .prepare = prepare_csv,
          .check_options = check_files_options};
}

}  // namespace lockstep::datasets
