#include "data/datasets/field_axes.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kAxesSite = "options";

using data::DatasetOptions;
using data::Field;

int rank_of(const Field& field) { return field.shape.rank(); }

int spatial_axes(const DatasetOptions& o, const std::vector<Field>& fields) {
  if (o.fields.spatial_axes >= 0) return static_cast<int>(o.fields.spatial_axes);
  const auto [least, most] = std::ranges::minmax(fields, {}, rank_of);
  const int axes = rank_of(least);
  return axes != rank_of(most) || axes > 1 ? std::min(axes, 3) : 0;  // one dimension alone is a row of features
}

}  // namespace

FieldAxes axes_of(const DatasetOptions& o, const std::vector<Field>& inputs, const std::vector<Field>& targets) {
  const int most_target = targets.empty() ? 0 : rank_of(*std::ranges::max_element(targets, {}, rank_of));
  if (o.fields.series) {
    for (const Field& field : inputs) {
      check(rank_of(field) == 1 || rank_of(field) == 2, kAxesSite,
            "--series: '{}' has samples {}, expected (time) or (time, features)", field.name, field.shape.str());
    }
    return {.inputs = 1, .targets = most_target == 2 ? 1 : 0, .series = true};
  }
  const int most_input = rank_of(*std::ranges::max_element(inputs, {}, rank_of));
  const bool numbers =
      !targets.empty() && (o.fields.spatial_axes >= 0 ? most_target < std::min<std::int64_t>(2, o.fields.spatial_axes)
                                                      : most_target < std::min(2, most_input - 1));
  if (numbers) return {.inputs = spatial_axes(o, inputs), .targets = 0};
  std::vector<Field> all = inputs;
  all.insert(all.end(), targets.begin(), targets.end());
  const int axes = spatial_axes(o, all);
  return {.inputs = axes, .targets = axes};
}

}  // namespace lockstep::datasets
