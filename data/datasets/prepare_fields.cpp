#include "data/datasets/prepare_fields.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "data/datasets/field_axes.h"
#include "data/datasets/field_checks.h"
#include "data/datasets/field_options.h"
#include "data/datasets/field_record.h"
#include "data/datasets/field_transforms.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/data/augment/gaussian_noise.h"
#include "lockstep/data/class_target.h"
#include "lockstep/data/join_fields.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kFieldsSite = "options";

using data::DatasetOptions;
using data::Field;
using data::Purpose;
using data::RunData;

std::vector<Field> called(const std::vector<Field>& fields, const std::vector<std::string>& names) {
  std::vector<Field> found;
  for (const std::string& name : names) found.push_back(fields[data::find_field(kFieldsSite, fields, name)]);
  return found;
}

// Counts the classes of the target, or takes them from the run that made the weights.
void count_classes(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, const std::string& name) {
  data.labels.field = name;
  if (is_known(o)) {
    data.labels.counts = comm::collectively(comm, [&] { return FieldRecord::parse(*o.record).class_samples; });
    return;
  }
  const std::int64_t wanted = o.fields.classes > 0 ? o.fields.classes : data.classes();
  data.labels.counts =
      data::count_classes(*data.train, name, wanted, static_cast<std::int32_t>(o.fields.ignore_index), comm);
}

// The normalisation of these arrays: that of the run that made the weights, else measured.
data::Normalisation normalisation_for(const RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                                      const FieldNames& names, const FieldAxes& axes) {
  const std::vector<Field>& fields = data.train->fields();
  if (is_known(o))
    return comm::collectively(
        comm, [&] { return normalisation_of(FieldRecord::parse(*o.record), fields, names.inputs, names.targets); });
  const auto wanted = comm::collectively(
      comm, [&] { return wishes(o, called(fields, names.inputs), called(fields, names.targets), axes); });
  return comm == nullptr ? data::measure_normalisation(*data.train, wanted)
                         : data::measure_normalisation(*data.train, wanted, *comm);
}

// The record that a checkpoint has of data that is ready; `names`: without targets that are classes.
FieldRecord record_of(const RunData& data, const FieldNames& names, const FieldAxes& axes,
                      data::Normalisation normalisation) {
  const std::vector<Field>& fields = data.train->fields();
  FieldRecord record{.inputs = recorded(fields, names.inputs, names.input_columns),
                     .targets = recorded(fields, names.targets, names.target_columns),
                     .axes = axes,
                     .normalisation = std::move(normalisation),
                     .input = data.shape_of("input"),
                     .predicted = data.fields(),
                     .classes = data.classes(),
                     .class_samples = data.labels.counts,
                     .class_names = data.labels.names};
  if (!names.input_means.empty()) record.inputs.front().means = names.input_means;
  std::erase_if(record.predicted, [](const Field& field) { return field.name == "input"; });
  return record;
}

// Takes from the record of the run that made the weights what files without targets do not have.
void complete_for_prediction(RunData& data, const DatasetOptions& o) {
  check(is_known(o), kFieldsSite, "predictions of {} need the record of a checkpoint's data, and there is none",
        o.name);
  const FieldRecord record = FieldRecord::parse(*o.record);
  data.prediction.absent = absent_fields(record, data.shape_of("input"), o.floats);
  data.prediction.classes = record.classes;
  data.labels.counts = record.class_samples;
  data.labels.names = record.class_names;
  if (record.targets.empty()) return;
  data.prediction.decode = decoder(record);
  std::vector<std::string>& decoded = data.prediction.decoded;
  for (const RecordedField& target : record.targets) {
    if (target.columns.empty()) decoded.push_back(target.name);
    decoded.insert(decoded.end(), target.columns.begin(), target.columns.end());
  }
}

// Sets the transforms of training and of evaluation. Training samples take random symmetries before normalisation, and
// noise at the end.
void add_transforms(RunData& data, const DatasetOptions& o, const FieldNames& names, const FieldAxes& axes,
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

}  // namespace

std::vector<std::string> FieldNames::all() const {
  std::vector<std::string> names = inputs;
  names.insert(names.end(), targets.begin(), targets.end());
  return names;
}

FieldNames names_of(const DatasetOptions& o, const std::vector<Field>& fields) {
  const std::size_t inputs = split_names("inputs", o.fields.inputs).size();
  FieldNames names;
  for (std::size_t i = 0; i < fields.size(); ++i) (i < inputs ? names.inputs : names.targets).push_back(fields[i].name);
  return names;
}

std::vector<std::string> targets_of(const DatasetOptions& o) {
  if (o.purpose == Purpose::Predict || o.fields.targets.empty()) return {};
  return split_names("targets", o.fields.targets);
}

bool is_known(const DatasetOptions& o) { return o.purpose != Purpose::Train && o.record != nullptr; }

void prepare_fields(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, const FieldNames& names) {
  const std::vector<Field>& fields = data.train->fields();
  const bool classes = o.fields.target == data::TargetKind::Classes && !names.targets.empty();
  FieldNames numbers = names;
  if (classes) numbers.targets.clear();
  const FieldAxes axes = comm::collectively(comm, [&] {
    return is_known(o) ? FieldRecord::parse(*o.record).axes
                       : axes_of(o, called(fields, numbers.inputs), called(fields, numbers.targets));
  });
  data::Normalisation normalisation = normalisation_for(data, o, comm, numbers, axes);
  if (classes) count_classes(data, o, comm, names.targets.front());
  if (o.fields.target == data::TargetKind::Flags) check_flags(data, o, comm, names.targets);
  warn_of_targets(data, o, comm, names.targets);
  comm::collectively(comm, [&] {
    add_transforms(data, o, names, axes, normalisation);
    if (o.purpose == Purpose::Predict) {
      complete_for_prediction(data, o);
    } else {
      data.prediction.record = record_of(data, numbers, axes, std::move(normalisation)).text();
    }
  });
}

}  // namespace lockstep::datasets
