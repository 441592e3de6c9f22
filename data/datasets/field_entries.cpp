#include "data/datasets/field_entries.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/datasets/csv.h"
#include "data/datasets/field_axes.h"
#include "data/datasets/field_checks.h"
#include "data/datasets/field_options.h"
#include "data/datasets/field_record.h"
#include "data/datasets/field_sets.h"
#include "data/datasets/field_transforms.h"
#include "data/datasets/hdf5_fields.h"
#include "data/datasets/npy_fields.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/data/augment/gaussian_noise.h"
#include "lockstep/data/class_target.h"
#include "lockstep/data/join_fields.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kEntriesSite = "options";

using data::DatasetOptions;
using data::Field;
using data::Purpose;
using data::RunData;

// The arrays of the targets, which predictions do not need.
std::vector<std::string> targets_of(const DatasetOptions& o) {
  if (o.purpose == Purpose::Predict || o.fields.targets.empty()) return {};
  return split_names("targets", o.fields.targets);
}

bool is_known(const DatasetOptions& o) { return o.purpose != Purpose::Train && o.record != nullptr; }

// Names of the fields in their order: the sets have inputs first, then targets. Of a table, the columns of both.
struct Names {
  std::vector<std::string> inputs, targets, input_columns{}, target_columns{};

  std::vector<std::string> all() const {
    std::vector<std::string> names = inputs;
    names.insert(names.end(), targets.begin(), targets.end());
    return names;
  }
};

Names names_of(const DatasetOptions& o, const std::vector<Field>& fields) {
  const std::size_t inputs = split_names("inputs", o.fields.inputs).size();
  Names names;
  for (std::size_t i = 0; i < fields.size(); ++i) (i < inputs ? names.inputs : names.targets).push_back(fields[i].name);
  return names;
}

std::vector<Field> called(const std::vector<Field>& fields, const std::vector<std::string>& names) {
  std::vector<Field> found;
  for (const std::string& name : names) found.push_back(fields[data::find_field(kEntriesSite, fields, name)]);
  return found;
}

// Runs `work` and throws on all ranks if it throws on one.
template <class Work>
auto together(const comm::Communicator* comm, const Work& work) {
  return comm == nullptr ? work() : comm::collectively(*comm, work);
}

// Counts the classes of the target, or takes them from the run that made the weights.
void count_classes(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, const std::string& name) {
  data.class_field = name;
  if (is_known(o)) {
    data.class_counts = together(comm, [&] { return FieldRecord::parse(*o.record).class_samples; });
    return;
  }
  const std::int64_t wanted = o.fields.classes > 0 ? o.fields.classes : data.classes();
  data.class_counts =
      data::count_classes(*data.train, name, wanted, static_cast<std::int32_t>(o.fields.ignore_index), comm);
}

// The normalisation of these arrays: that of the run that made the weights, else measured.
data::Normalisation normalisation_for(const RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                                      const Names& names, const FieldAxes& axes) {
  const std::vector<Field>& fields = data.train->fields();
  if (is_known(o))
    return together(
        comm, [&] { return normalisation_of(FieldRecord::parse(*o.record), fields, names.inputs, names.targets); });
  const auto wanted =
      together(comm, [&] { return wishes(o, called(fields, names.inputs), called(fields, names.targets), axes); });
  return comm == nullptr ? data::measure_normalisation(*data.train, wanted)
                         : data::measure_normalisation(*data.train, wanted, *comm);
}

// What a checkpoint records of data that is ready; `names`: without targets that are classes.
FieldRecord record_of(const RunData& data, const Names& names, const FieldAxes& axes,
                      data::Normalisation normalisation) {
  const std::vector<Field>& fields = data.train->fields();
  FieldRecord record{.inputs = recorded(fields, names.inputs, names.input_columns),
                     .targets = recorded(fields, names.targets, names.target_columns),
                     .axes = axes,
                     .normalisation = std::move(normalisation),
                     .input = data.shape_of("input"),
                     .predicted = data.fields(),
                     .classes = data.classes(),
                     .class_samples = data.class_counts,
                     .class_names = data.class_names};
  std::erase_if(record.predicted, [](const Field& field) { return field.name == "input"; });
  return record;
}

// Takes from the record of the run that made the weights what files without targets do not have.
void complete_for_prediction(RunData& data, const DatasetOptions& o) {
  check(is_known(o), kEntriesSite, "predictions of {} need the record of a checkpoint's data, and there is none",
        o.name);
  const FieldRecord record = FieldRecord::parse(*o.record);
  data.absent = absent_fields(record, data.shape_of("input"), o.floats);
  data.absent_classes = record.classes;
  data.class_counts = record.class_samples;
  data.class_names = record.class_names;
  if (!record.targets.empty()) data.decode = decoder(record);
}

// Sets the transforms of training and of evaluation. Training samples take random symmetries before normalisation, and
// noise at the end.
void add_transforms(RunData& data, const DatasetOptions& o, const Names& names, const FieldAxes& axes,
                    const data::Normalisation& normalisation) {
  data::Transforms transforms{std::make_shared<data::Normalise>(normalisation, o.floats),
                              std::make_shared<data::ConvertFloats>(o.floats)};
  const auto join = [&](const char* name, const std::vector<std::string>& all, int dimensions) {
    transforms.push_back(std::make_shared<data::JoinFields>(
        data::JoinOptions{.name = name, .fields = all, .spatial_axes = dimensions, .channels_last = axes.series}));
  };
  join("input", names.inputs, axes.inputs);
  if (o.fields.target != data::TargetKind::Classes && !names.targets.empty())
    join("target", names.targets, axes.targets);
  if (o.fields.target == data::TargetKind::Classes && !names.targets.empty())
    transforms.push_back(std::make_shared<data::ClassTarget>(
        data::ClassTargetOptions{.field = names.targets.front(),
                                 .classes = data.classes(),
                                 .ignore_index = static_cast<std::int32_t>(o.fields.ignore_index)},
        axes.inputs));
  data.eval_transforms = transforms;
  data.train_transforms = symmetry_transforms(o, data.train->fields(), names.all(), axes.inputs);
  std::ranges::move(transforms, std::back_inserter(data.train_transforms));
  if (o.noise > 0)
    data.train_transforms.push_back(
        std::make_shared<data::GaussianNoise>(data::GaussianNoiseOptions{.field = "input", .stddev = o.noise}));
}

void prepare_fields(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, const Names& names) {
  const std::vector<Field>& fields = data.train->fields();
  const bool classes = o.fields.target == data::TargetKind::Classes && !names.targets.empty();
  Names numbers = names;
  if (classes) numbers.targets.clear();
  const FieldAxes axes = together(comm, [&] {
    return is_known(o) ? FieldRecord::parse(*o.record).axes
                       : axes_of(o, called(fields, numbers.inputs), called(fields, numbers.targets));
  });
  data::Normalisation normalisation = normalisation_for(data, o, comm, numbers, axes);
  if (classes) count_classes(data, o, comm, names.targets.front());
  if (o.fields.target == data::TargetKind::Flags) check_flags(data, o, comm, names.targets);
  warn_of_targets(data, o, comm, names.targets);
  together(comm, [&] {
    add_transforms(data, o, names, axes, normalisation);
    if (o.purpose == Purpose::Predict) {
      complete_for_prediction(data, o);
    } else {
      data.record = record_of(data, numbers, axes, std::move(normalisation)).text();
    }
  });
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

// The files for evaluation have the classes of those for training. Tells the names of the columns in RunData::record,
// from which prepare_csv() takes them.
RunData open_csv(const DatasetOptions& o) {
  std::vector<std::string> classes;
  if (is_known(o)) classes = FieldRecord::parse(*o.record).class_names;
  std::string names;
  RunData data = open_sets(o, [&](const DatasetOptions& options, const std::vector<std::string>& files) {
    CsvOptions csv{.files = files,
                   .dir = options.dir,
                   .inputs = csv_inputs(options),
                   .targets = targets_of(options),
                   .dtype = options.floats};
    if (options.purpose != Purpose::Predict) csv.label = options.fields.label;
    csv.classes = classes;
    auto set = std::make_unique<CsvDataset>(std::move(csv));
    classes = set->class_names();
    names = nlohmann::json::array({set->input_names(), set->target_names()})
                .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    return set;
  });
  data.class_names = std::move(classes);
  data.record = names;
  return data;
}

void prepare_csv(RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  const auto columns = nlohmann::json::parse(data.record).get<std::vector<std::vector<std::string>>>();
  Names names{.inputs = {"input"}, .targets = {}, .input_columns = columns.at(0), .target_columns = columns.at(1)};
  if (o.purpose != Purpose::Predict) names.targets.emplace_back(o.fields.label.empty() ? "target" : "label");
  prepare_fields(data, o, comm, names);
}

}  // namespace

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
                check(o.fields.files.empty() && o.fields.eval_files.empty(), kEntriesSite,
                      "--files and --eval-files are for other data sets; of arrays, expected paths in --inputs and "
                      "--targets, and --eval-fraction");
              }};
}

data::DatasetEntry csv_entry() {
  return {.name = "csv",
          .description = "rows of CSV tables: --files, and columns as --inputs, --targets or --label",
          .takes_fields = true,
          .open_all = open_csv,
          .prepare = prepare_csv,
          .check_options = check_files_options};
}

}  // namespace lockstep::datasets
