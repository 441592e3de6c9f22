#include "data/datasets/field_record.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/data/join_fields.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kRecordSite = "data", kPredict = "predict";
constexpr DType kTypes[] = {DType::F32, DType::F64, DType::I32, DType::I64, DType::U8};

using data::Field;
using data::NamedTensor;
using Json = nlohmann::json;

std::int64_t channels_of(const RecordedField& field, int axes, bool series) {
  return data::channels_of({.name = field.name, .shape = field.shape}, axes, series);
}

Json to_json(const std::vector<RecordedField>& fields, int axes, bool series) {
  Json list = Json::array();
  for (const RecordedField& field : fields) {
    Json one = {{"name", field.name}, {"channels", channels_of(field, axes, series)}, {"shape", field.shape.dims()}};
    if (!field.columns.empty()) one["columns"] = field.columns;
    if (!field.means.empty()) one["means"] = field.means;
    list.push_back(std::move(one));
  }
  return list;
}

Shape shape_of(const Json& json) {
  auto sizes = json.get<std::vector<std::int64_t>>();
  const bool fits = sizes.size() <= 8 && std::ranges::all_of(sizes, [](std::int64_t size) {
                      return size >= 1 && size <= std::int64_t{1} << 40;
                    });
  check(fits, kRecordSite, "the checkpoint's record of its data has the shape {}, expected sizes from 1 on",
        json.dump());
  return Shape(std::move(sizes));
}

std::vector<RecordedField> recorded_fields(const Json& json, int axes) {
  std::vector<RecordedField> fields;
  for (const Json& one : json) {
    RecordedField field{.name = one.at("name").get<std::string>(), .shape = shape_of(one.at("shape"))};
    if (one.contains("columns")) field.columns = one.at("columns").get<std::vector<std::string>>();
    if (one.contains("means")) field.means = one.at("means").get<std::vector<double>>();
    check(field.means.empty() || std::ssize(field.means) == field.shape.elements(), kRecordSite,
          "the checkpoint's record of its data has {} means for the {} columns of '{}'", field.means.size(),
          field.shape.elements(), field.name);
    check(field.shape.rank() >= axes && field.shape.rank() <= axes + 1, kRecordSite,
          "the checkpoint's record of its data has '{}' with samples {}, expected {} spatial dimensions", field.name,
          field.shape.str(), axes);
    check(field.columns.empty() || std::ssize(field.columns) == field.shape.elements(), kRecordSite,
          "the checkpoint's record of its data has {} names for the {} columns of '{}'", field.columns.size(),
          field.shape.elements(), field.name);
    fields.push_back(std::move(field));
  }
  return fields;
}

DType type_of(const std::string& name) {
  const auto* const type = std::ranges::find(kTypes, std::string_view(name), [](DType t) { return name_of(t); });
  check(type != std::end(kTypes), kRecordSite,
        "the checkpoint's record of its data has the type '{}', expected f32, i32, ...", name);
  return *type;
}

FieldRecord record_of(const Json& json) {
  FieldRecord record{.axes = {.inputs = json.at("spatial_axes").get<int>(),
                              .targets = json.at("target_axes").get<int>(),
                              .series = json.at("series").get<bool>()}};
  for (const int axes : {record.axes.inputs, record.axes.targets})
    check(axes >= 0 && axes <= 3, kRecordSite,
          "the checkpoint's record of its data has {} spatial dimensions, expected 0 to 3", axes);
  record.inputs = recorded_fields(json.at("inputs"), record.axes.inputs);
  record.targets = recorded_fields(json.at("targets"), record.axes.targets);
  record.normalisation = data::Normalisation::parse(json.at("normalisation").dump());
  const Json& model = json.at("model");
  record.input = shape_of(model.at("input"));
  for (const Json& one : model.at("predicted")) {
    record.predicted.push_back({.name = one.at("name").get<std::string>(),
                                .shape = shape_of(one.at("shape")),
                                .dtype = type_of(one.at("dtype").get<std::string>())});
  }
  record.classes = model.at("classes").get<std::int64_t>();
  record.class_samples = model.at("class_samples").get<std::vector<std::int64_t>>();
  record.class_names = model.at("class_names").get<std::vector<std::string>>();
  check(record.classes >= 0, kRecordSite, "the checkpoint's record of its data has {} classes, expected at least 0",
        record.classes);
  check(record.class_samples.empty() || std::ssize(record.class_samples) == record.classes, kRecordSite,
        "the checkpoint's record of its data counts {} classes, expected {}", record.class_samples.size(),
        record.classes);
  return record;
}

std::string recorded_names(const std::vector<RecordedField>& fields) {
  std::string names;
  for (const RecordedField& field : fields) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

// Appends the normalisation of the arrays `names`, which are those of one option.
void add_entries(const FieldRecord& record, const std::vector<RecordedField>& trained, int axes,
                 std::string_view option, const std::vector<Field>& fields, const std::vector<std::string>& names,
                 std::vector<data::FieldNormalisation>& entries) {
  const bool series = record.axes.series;
  check(names.size() == trained.size(), kRecordSite, "--{} has {} arrays ({}), the model was trained with {} ({})",
        option, names.size(), joined(names, ", "), trained.size(), recorded_names(trained));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const RecordedField& before = trained[i];
    const Field& now = fields[data::find_field(kRecordSite, fields, names[i])];
    const bool elsewhere =
        names[i] != before.name && std::ranges::find(trained, names[i], &RecordedField::name) != trained.end();
    check(!elsewhere, kRecordSite, "--{} has '{}' where the model was trained with '{}': expected the order {}", option,
          names[i], before.name, recorded_names(trained));
    const bool fits = now.shape.rank() == axes || now.shape.rank() == axes + 1;
    check(fits && data::channels_of(now, axes, series) == channels_of(before, axes, series), kRecordSite,
          "'{}' has samples {}, the model was trained with '{}' of samples {}: expected {} spatial dimensions and {} "
          "channels",
          now.name, now.shape.str(), before.name, before.shape.str(), axes, channels_of(before, axes, series));
    const data::FieldNormalisation* entry = record.normalisation.find(before.name);
    if (entry == nullptr) continue;
    entries.push_back(*entry);
    entries.back().field = now.name;
    entries.back().channel_axis = now.shape.rank() > axes ? (series ? axes : 0) : -1;
  }
}

// Copies `count` channels from `first` on. `from` is (outer, channels, inner), whatever its dimensions are called.
Tensor channels(const Tensor& from, std::int64_t all, std::int64_t first, std::int64_t count, std::int64_t inner,
                Shape shape) {
  Tensor to(std::move(shape), from.dtype());
  const auto bytes = static_cast<std::size_t>(inner) * size_of(from.dtype());
  const std::int64_t outer = all * inner > 0 ? from.elements() / (all * inner) : 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    std::memcpy(to.raw() + static_cast<std::size_t>(o * count) * bytes,
                from.raw() + static_cast<std::size_t>(o * all + first) * bytes,
                static_cast<std::size_t>(count) * bytes);
  }
  return to;
}

// `shape` with the size `count` in dimension `axis`, or without that dimension.
Shape with_channels(const Shape& shape, int axis, std::int64_t count, bool divided) {
  std::vector<std::int64_t> sizes = shape.dims();
  const auto at = sizes.begin() + axis;
  if (divided) {
    *at = count;
  } else {
    sizes.erase(at);
  }
  return Shape(std::move(sizes));
}

// The dimension of predictions that counts channels.
int channel_axis(const FieldAxes& axes) { return axes.series ? axes.targets + 1 : 1; }

std::vector<NamedTensor> decoded(const FieldRecord& record, const Tensor& prediction) {
  const int axes = record.axes.targets;
  const bool series = record.axes.series;
  std::int64_t expected = 0;
  for (const RecordedField& target : record.targets) expected += channels_of(target, axes, series);
  const Shape& shape = prediction.shape();
  const int axis = channel_axis(record.axes);
  check(shape.rank() == axes + 2 && shape[axis] == expected, kPredict,
        "the prediction is {}, expected (samples, {} channels, {} spatial sizes){}: the targets are {}", shape.str(),
        expected, axes, series ? " with the channels behind the time" : "", recorded_names(record.targets));
  std::int64_t inner = 1;
  for (int d = axis + 1; d < shape.rank(); ++d) inner *= shape[d];
  std::vector<NamedTensor> arrays;
  std::int64_t first = 0;
  for (const RecordedField& target : record.targets) {
    const std::int64_t count = channels_of(target, axes, series);
    const bool divided = target.shape.rank() > axes;
    Tensor values = channels(prediction, expected, first, count, inner, with_channels(shape, axis, count, divided));
    values = record.normalisation.restore(target.name, std::move(values));
    for (std::size_t c = 0; c < target.columns.size(); ++c)
      arrays.push_back(
          {target.columns[c], channels(values, count, static_cast<std::int64_t>(c), 1, 1, Shape{shape[0]})});
    if (target.columns.empty()) arrays.push_back({target.name, std::move(values)});
    first += count;
  }
  return arrays;
}

}  // namespace

std::string FieldRecord::text() const {
  Json model = {{"input", input.dims()},
                {"classes", classes},
                {"class_samples", class_samples},
                {"class_names", class_names},
                {"predicted", Json::array()}};
  for (const Field& field : predicted)
    model["predicted"].push_back(
        {{"name", field.name}, {"shape", field.shape.dims()}, {"dtype", std::string(name_of(field.dtype))}});
  return Json{{"inputs", to_json(inputs, axes.inputs, axes.series)},
              {"targets", to_json(targets, axes.targets, axes.series)},
              {"spatial_axes", axes.inputs},
              {"target_axes", axes.targets},
              {"series", axes.series},
              {"normalisation", Json::parse(normalisation.text())},
              {"model", model}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

FieldRecord FieldRecord::parse(std::string_view text) {
  try {
    return record_of(Json::parse(text));
  } catch (const Json::exception& error) {
    fail(kRecordSite, "the checkpoint's record of its data cannot be used: {}; expected that of a run of this version",
         error.what());
  }
}

std::vector<RecordedField> recorded(const std::vector<Field>& fields, const std::vector<std::string>& names,
                                    const std::vector<std::string>& columns) {
  std::vector<RecordedField> list;
  for (const std::string& name : names)
    list.push_back(
        {.name = name, .shape = fields[data::find_field(kRecordSite, fields, name)].shape, .columns = columns});
  return list;
}

data::Normalisation normalisation_of(const FieldRecord& record, const std::vector<Field>& fields,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& targets) {
  std::vector<data::FieldNormalisation> entries;
  add_entries(record, record.inputs, record.axes.inputs, "inputs", fields, inputs, entries);
  if (!targets.empty()) add_entries(record, record.targets, record.axes.targets, "targets", fields, targets, entries);
  return data::Normalisation(std::move(entries));
}

std::vector<Field> absent_fields(const FieldRecord& record, const Shape& input, DType floats) {
  const int axes = record.axes.inputs;
  // Where fields are on the grid of the input, they follow its sizes; numbers and steps of series do not.
  const bool follows = !record.axes.series && record.input.rank() == axes + 1 && input.rank() == axes + 1;
  std::vector<Field> fields = record.predicted;
  for (Field& field : fields) {
    if (is_floating(field.dtype)) field.dtype = floats;
    const int before = field.shape.rank() - axes;  // dimensions before the spatial ones
    bool same = follows && before >= 0;
    for (int axis = 0; same && axis < axes; ++axis) same = field.shape[before + axis] == record.input[1 + axis];
    for (int axis = 0; same && axis < axes; ++axis) field.shape[before + axis] = input[1 + axis];
  }
  return fields;
}

std::vector<metrics::TargetUnits> units_of(const FieldRecord& record, int& axis) {
  axis = channel_axis(record.axes);
  std::vector<metrics::TargetUnits> all;
  for (const RecordedField& target : record.targets) {
    metrics::TargetUnits units{.name = target.name,
                               .channels = channels_of(target, record.axes.targets, record.axes.series)};
    if (const data::FieldNormalisation* entry = record.normalisation.find(target.name)) {
      units.shift = entry->shift;
      units.scale = entry->scale;
      units.logarithm = entry->log_offset.has_value();
    }
    if (target.columns.empty()) {
      all.push_back(std::move(units));
      continue;
    }
    for (std::size_t c = 0; c < target.columns.size(); ++c) {
      const auto one = [c](const std::vector<double>& numbers) { return numbers[numbers.size() == 1 ? 0 : c]; };
      all.push_back({.name = target.columns[c],
                     .shift = {one(units.shift)},
                     .scale = {one(units.scale)},
                     .logarithm = units.logarithm});
    }
  }
  return all;
}

std::function<std::vector<NamedTensor>(Tensor)> decoder(const FieldRecord& record) {
  return [record](const Tensor& prediction) { return decoded(record, prediction); };
}

}  // namespace lockstep::datasets
