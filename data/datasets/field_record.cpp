#include "data/datasets/field_record.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/data/join_fields.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSite = "data", kPredict = "predict";
constexpr DType kTypes[] = {DType::F32, DType::F64, DType::I32, DType::I64, DType::U8};

using data::Field;
using data::NamedTensor;
using Json = nlohmann::json;

std::int64_t channels_of(const RecordedField& field, int axes) {
  return data::channels_of({.name = field.name, .shape = field.shape}, axes);
}

Json to_json(const std::vector<RecordedField>& fields, int axes) {
  Json list = Json::array();
  for (const RecordedField& field : fields) {
    Json one = {{"name", field.name}, {"channels", channels_of(field, axes)}, {"shape", field.shape.dims()}};
    if (!field.columns.empty()) one["columns"] = field.columns;
    list.push_back(std::move(one));
  }
  return list;
}

Shape shape_of(const Json& json) {
  auto sizes = json.get<std::vector<std::int64_t>>();
  const bool fits = sizes.size() <= 8 && std::ranges::all_of(sizes, [](std::int64_t size) {
                      return size >= 1 && size <= std::int64_t{1} << 40;
                    });
  check(fits, kSite, "the checkpoint's record of its data has the shape {}, expected sizes from 1 on", json.dump());
  return Shape(std::move(sizes));
}

std::vector<RecordedField> recorded_fields(const Json& json, int axes) {
  std::vector<RecordedField> fields;
  for (const Json& one : json) {
    RecordedField field{.name = one.at("name").get<std::string>(), .shape = shape_of(one.at("shape"))};
    if (one.contains("columns")) field.columns = one.at("columns").get<std::vector<std::string>>();
    check(field.shape.rank() >= axes && field.shape.rank() <= axes + 1, kSite,
          "the checkpoint's record of its data has '{}' with samples {}, expected {} spatial dimensions", field.name,
          field.shape.str(), axes);
    check(field.columns.empty() || std::ssize(field.columns) == field.shape.elements(), kSite,
          "the checkpoint's record of its data has {} names for the {} columns of '{}'", field.columns.size(),
          field.shape.elements(), field.name);
    fields.push_back(std::move(field));
  }
  return fields;
}

DType type_of(const std::string& name) {
  const auto* const type = std::ranges::find(kTypes, std::string_view(name), [](DType t) { return name_of(t); });
  check(type != std::end(kTypes), kSite,
        "the checkpoint's record of its data has the type '{}', expected f32, i32, ...", name);
  return *type;
}

FieldRecord record_of(const Json& json) {
  FieldRecord record{.spatial_axes = json.at("spatial_axes").get<int>()};
  check(record.spatial_axes >= 0 && record.spatial_axes <= 3, kSite,
        "the checkpoint's record of its data has {} spatial dimensions, expected 0 to 3", record.spatial_axes);
  record.inputs = recorded_fields(json.at("inputs"), record.spatial_axes);
  record.targets = recorded_fields(json.at("targets"), record.spatial_axes);
  record.normalisation = data::Normalisation::parse(json.at("normalisation").dump());
  const Json& model = json.at("model");
  record.input = shape_of(model.at("input"));
  for (const Json& one : model.at("predicted")) {
    record.predicted.push_back({.name = one.at("name").get<std::string>(),
                                .shape = shape_of(one.at("shape")),
                                .dtype = type_of(one.at("dtype").get<std::string>())});
  }
  record.classes = model.at("classes").get<std::int64_t>();
  check(record.classes >= 0, kSite, "the checkpoint's record of its data has {} classes, expected at least 0",
        record.classes);
  return record;
}

std::string names_of(const std::vector<RecordedField>& fields) {
  std::string names;
  for (const RecordedField& field : fields) names += (names.empty() ? "" : ", ") + field.name;
  return names;
}

// Appends the normalisation of the arrays `names`, which are those of one option.
void add_entries(const FieldRecord& record, const std::vector<RecordedField>& trained, std::string_view option,
                 const std::vector<Field>& fields, const std::vector<std::string>& names,
                 std::vector<data::FieldNormalisation>& entries) {
  check(names.size() == trained.size(), kSite, "--{} has {} arrays ({}), the model was trained with {} ({})", option,
        names.size(), joined(names, ", "), trained.size(), names_of(trained));
  for (std::size_t i = 0; i < names.size(); ++i) {
    const RecordedField& before = trained[i];
    const Field& now = fields[data::find_field(kSite, fields, names[i])];
    const bool elsewhere =
        names[i] != before.name && std::ranges::find(trained, names[i], &RecordedField::name) != trained.end();
    check(!elsewhere, kSite, "--{} has '{}' where the model was trained with '{}': expected the order {}", option,
          names[i], before.name, names_of(trained));
    const int axes = record.spatial_axes;
    const bool fits = now.shape.rank() == axes || now.shape.rank() == axes + 1;
    check(fits && data::channels_of(now, axes) == channels_of(before, axes), kSite,
          "'{}' has samples {}, the model was trained with '{}' of samples {}: expected {} spatial dimensions and {} "
          "channels",
          now.name, now.shape.str(), before.name, before.shape.str(), axes, channels_of(before, axes));
    const data::FieldNormalisation* entry = record.normalisation.find(before.name);
    if (entry == nullptr) continue;
    entries.push_back(*entry);
    entries.back().field = now.name;
    entries.back().channel_axis = now.shape.rank() > axes ? 0 : -1;
  }
}

// Copies `count` channels from `first` on of all samples. `inner`: elements of a channel.
Tensor channels(const Tensor& from, std::int64_t first, std::int64_t count, std::int64_t inner, Shape sample) {
  const std::int64_t samples = from.shape()[0], all = from.shape()[1];
  Tensor to(sample.batched(samples), from.dtype());
  const auto bytes = static_cast<std::size_t>(inner) * size_of(from.dtype());
  for (std::int64_t s = 0; s < samples && bytes > 0; ++s) {
    std::memcpy(to.raw() + static_cast<std::size_t>(s * count) * bytes,
                from.raw() + static_cast<std::size_t>(s * all + first) * bytes,
                static_cast<std::size_t>(count) * bytes);
  }
  return to;
}

std::vector<NamedTensor> decoded(const FieldRecord& record, const Tensor& prediction) {
  const int axes = record.spatial_axes;
  std::int64_t expected = 0;
  for (const RecordedField& target : record.targets) expected += channels_of(target, axes);
  const Shape& shape = prediction.shape();
  check(shape.rank() == axes + 2 && shape[1] == expected, kPredict,
        "the prediction is {}, expected (samples, {} channels, {} spatial sizes): the targets are {}", shape.str(),
        expected, axes, names_of(record.targets));
  const Shape spatial = shape.tail().tail();
  std::vector<NamedTensor> arrays;
  std::int64_t first = 0;
  for (const RecordedField& target : record.targets) {
    const std::int64_t count = channels_of(target, axes);
    const bool divided = target.shape.rank() > axes;
    Tensor values = channels(prediction, first, count, spatial.elements(), divided ? spatial.batched(count) : spatial);
    values = record.normalisation.restore(target.name, std::move(values));
    for (std::size_t c = 0; c < target.columns.size(); ++c)
      arrays.push_back({target.columns[c], channels(values, static_cast<std::int64_t>(c), 1, 1, Shape{})});
    if (target.columns.empty()) arrays.push_back({target.name, std::move(values)});
    first += count;
  }
  return arrays;
}

}  // namespace

std::string FieldRecord::text() const {
  Json model = {{"input", input.dims()}, {"classes", classes}, {"predicted", Json::array()}};
  for (const Field& field : predicted)
    model["predicted"].push_back(
        {{"name", field.name}, {"shape", field.shape.dims()}, {"dtype", std::string(name_of(field.dtype))}});
  return Json{{"inputs", to_json(inputs, spatial_axes)},
              {"targets", to_json(targets, spatial_axes)},
              {"spatial_axes", spatial_axes},
              {"normalisation", Json::parse(normalisation.text())},
              {"model", model}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

FieldRecord FieldRecord::parse(std::string_view text) {
  try {
    return record_of(Json::parse(text));
  } catch (const Json::exception& error) {
    fail(kSite, "the checkpoint's record of its data cannot be used: {}; expected that of a run of this version",
         error.what());
  }
}

std::vector<RecordedField> recorded(const std::vector<Field>& fields, const std::vector<std::string>& names,
                                    const std::vector<std::string>& columns) {
  std::vector<RecordedField> list;
  for (const std::string& name : names)
    list.push_back({.name = name, .shape = fields[data::find_field(kSite, fields, name)].shape, .columns = columns});
  return list;
}

data::Normalisation normalisation_of(const FieldRecord& record, const std::vector<Field>& fields,
                                     const std::vector<std::string>& inputs, const std::vector<std::string>& targets) {
  std::vector<data::FieldNormalisation> entries;
  add_entries(record, record.inputs, "inputs", fields, inputs, entries);
  if (!targets.empty()) add_entries(record, record.targets, "targets", fields, targets, entries);
  return data::Normalisation(std::move(entries));
}

std::vector<Field> absent_fields(const FieldRecord& record, const Shape& input, DType floats) {
  const int axes = record.spatial_axes;
  std::vector<Field> fields = record.predicted;
  for (Field& field : fields) {
    if (is_floating(field.dtype)) field.dtype = floats;
    const int before = field.shape.rank() - axes;  // dimensions before the spatial ones
    bool same = before >= 0 && record.input.rank() == axes + 1 && input.rank() == axes + 1;
    for (int axis = 0; same && axis < axes; ++axis) same = field.shape[before + axis] == record.input[1 + axis];
    for (int axis = 0; same && axis < axes; ++axis) field.shape[before + axis] = input[1 + axis];
  }
  return fields;
}

std::function<std::vector<NamedTensor>(Tensor)> decoder(const FieldRecord& record) {
  return [record](const Tensor& prediction) { return decoded(record, prediction); };
}

}  // namespace lockstep::datasets
