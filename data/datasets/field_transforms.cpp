#include "data/datasets/field_transforms.h"

#include <algorithm>
#include <utility>

#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"
#include "lockstep/data/augment/field_symmetry.h"
#include "lockstep/data/join_fields.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kTransformsSite = "options";

using data::DatasetOptions;
using data::Field;

// Takes the next numbers of --mean or --std: one for each channel.
std::vector<double> take(std::vector<double>& given, std::int64_t channels) {
  const auto end = given.begin() + std::min<std::ptrdiff_t>(channels, std::ssize(given));
  std::vector<double> mine(given.begin(), end);
  given.erase(given.begin(), end);
  return mine;
}

struct ScaledField {
  const Field* field;
  int axes;  // spatial dimensions, or 1 for time
  std::int64_t channels;
};

}  // namespace

std::vector<data::NormalisationOptions> wishes(const DatasetOptions& o, const std::vector<Field>& inputs,
                                               const std::vector<Field>& targets, const FieldAxes& axes) {
  const bool flags = o.fields.target == data::TargetKind::Flags;
  std::vector<ScaledField> scaled;
  const auto add = [&](const std::vector<Field>& fields, int dimensions) {
    for (const Field& field : fields)
      scaled.push_back({&field, dimensions, data::channels_of(field, dimensions, axes.series)});
  };
  add(inputs, axes.inputs);
  if (!flags) add(targets, axes.targets);
  std::vector<double> mean = o.mean, stddev = o.stddev;
  std::int64_t channels = 0;
  std::vector<std::string> names;
  for (const ScaledField& each : scaled) {
    channels += each.channels;
    names.push_back(each.field->name);
  }
  check(mean.empty() || (std::ssize(mean) == channels && std::ssize(stddev) == channels), kTransformsSite,
        "--mean has {} numbers and --std {}, expected {}: one for each channel of {}", mean.size(), stddev.size(),
        channels, joined(names, ", "));
  std::vector<data::NormalisationOptions> wishes;
  for (const ScaledField& each : scaled) {
    const int counting = axes.series ? each.axes : 0;  // the dimension that counts channels
    data::NormalisationOptions wish{.field = each.field->name,
                                    .scaling = scaling_of(o.fields),
                                    .log_offset = log_offset_of(o.fields),
                                    .channel_axis = each.field->shape.rank() > each.axes ? counting : -1};
    wish.mean = take(mean, mean.empty() ? 0 : each.channels);
    wish.stddev = take(stddev, stddev.empty() ? 0 : each.channels);
    wishes.push_back(std::move(wish));
  }
  if (flags) {  // only converted
    for (const Field& field : targets) wishes.push_back({.field = field.name, .scaling = data::Scaling::None});
  }
  return wishes;
}

data::Transforms symmetry_transforms(const DatasetOptions& o, const std::vector<Field>& fields,
                                     const std::vector<std::string>& names, int axes) {
  if (o.fields.symmetry == data::SymmetryKind::None) return {};
  check(axes >= 1, kTransformsSite,
        "--symmetry is {}, and samples have no grid; expected fields with 1 to 3 spatial dimensions",
        name_of(o.fields.symmetry));
  std::vector<data::FieldNormalisation> floats;
  data::Transforms transforms;
  std::vector<Field> on_grid;
  for (const std::string& name : names) {
    const Field& field = fields[data::find_field(kTransformsSite, fields, name)];
    if (field.dtype != DType::F32 && field.dtype != DType::F64)
      floats.push_back({.field = name, .shift = {0}, .scale = {1}});
    if (field.shape.rank() < axes && field.shape.rank() != 1) continue;
    on_grid.push_back(field);
    if (field.shape.rank() != axes) continue;
    transforms.push_back(
        std::make_shared<data::JoinFields>(data::JoinOptions{.name = name, .fields = {name}, .spatial_axes = axes}));
  }
  if (!floats.empty())
    transforms.insert(transforms.begin(),
                      std::make_shared<data::Normalise>(data::Normalisation(std::move(floats)), o.floats));
  transforms.push_back(std::make_shared<data::FieldSymmetry>(symmetry_options(o.fields, on_grid, axes)));
  return transforms;
}

}  // namespace lockstep::datasets
