#include "lockstep/data/join_fields.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kJoin = "join fields";

Shape spatial_sizes(const Field& field, const JoinOptions& o) {
  if (field.shape.rank() == o.spatial_axes) return field.shape;
  const auto& dims = field.shape.dims();
  return o.channels_last ? Shape(std::vector<std::int64_t>(dims.begin(), dims.end() - 1)) : field.shape.tail();
}

Shape with_channels(const Shape& sizes, std::int64_t channels, bool last) {
  if (!last) return sizes.batched(channels);
  std::vector<std::int64_t> dims = sizes.dims();
  dims.push_back(channels);
  return Shape(std::move(dims));
}

}  // namespace

std::int64_t channels_of(const Field& field, int spatial_axes, bool channels_last) {
  if (field.shape.rank() == spatial_axes) return 1;
  return field.shape[channels_last ? field.shape.rank() - 1 : 0];
}

JoinFields::JoinFields(JoinOptions options) : options_(std::move(options)) {
  check(!options_.name.empty() && !options_.fields.empty(), kJoin,
        "{} fields for '{}', expected a name and at least one", options_.fields.size(), options_.name);
  check(options_.spatial_axes >= 0, kJoin, "{}: {} spatial dimensions, expected at least 0", options_.name,
        options_.spatial_axes);
}

std::vector<std::size_t> JoinFields::places(const std::vector<Field>& in) const {
  std::vector<std::size_t> places;
  for (const std::string& name : options_.fields) places.push_back(find_field(kJoin, in, name));
  return places;
}

std::vector<Field> JoinFields::fields(const std::vector<Field>& in) const {
  const int axes = options_.spatial_axes;
  const std::vector<std::size_t> places = this->places(in);
  const Field& first = in[places.front()];
  std::int64_t channels = 0;
  for (const std::size_t place : places) {
    const Field& field = in[place];
    check(field.shape.rank() == axes || field.shape.rank() == axes + 1, kJoin,
          "{}: '{}' has samples {}, expected {} spatial dimensions, with or without channels {} them", options_.name,
          field.name, field.shape.str(), axes, options_.channels_last ? "behind" : "before");
    check(spatial_sizes(field, options_) == spatial_sizes(first, options_), kJoin,
          "{}: '{}' has samples {}, but '{}' has {}; "
          "expected the same spatial sizes",
          options_.name, field.name, field.shape.str(), first.name, first.shape.str());
    check(field.dtype == first.dtype, kJoin, "{}: '{}' is {}, but '{}' is {}; expected one type", options_.name,
          field.name, name_of(field.dtype), first.name, name_of(first.dtype));
    channels += channels_of(field, axes, options_.channels_last);
  }
  std::vector<Field> out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i == places.front()) {
      const Shape joined = with_channels(spatial_sizes(first, options_), channels, options_.channels_last);
      out.push_back({options_.name, joined, first.dtype});
    }
    if (std::ranges::find(places, i) == places.end()) out.push_back(in[i]);
  }
  return out;
}

void JoinFields::apply(const SampleKey& /*key*/, const std::vector<Field>& shape, std::span<const std::byte* const> in,
                       std::span<std::byte* const> out) const {
  const std::vector<std::size_t> places = this->places(shape);
  std::size_t next = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == places.front()) {
      std::byte* to = out[next++];
      // Points whose channels lie together; in front of them, all points of a channel do.
      const std::size_t points =
          options_.channels_last ? static_cast<std::size_t>(spatial_sizes(shape[i], options_).elements()) : 1;
      for (std::size_t point = 0; point < points; ++point) {
        for (const std::size_t place : places) {
          const std::size_t bytes = shape[place].bytes() / points;
          std::memcpy(to, in[place] + point * bytes, bytes);
          to += bytes;
        }
      }
    }
    if (std::ranges::find(places, i) == places.end()) std::memcpy(out[next++], in[i], shape[i].bytes());
  }
}

}  // namespace lockstep::data
