#include "lockstep/data/join_fields.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kJoin = "join fields";

Shape spatial_sizes(const Field& field, int spatial_axes) {
  return field.shape.rank() == spatial_axes ? field.shape : field.shape.tail();
}

}  // namespace

std::int64_t channels_of(const Field& field, int spatial_axes) {
  return field.shape.rank() == spatial_axes ? 1 : field.shape[0];
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
          "{}: '{}' has samples {}, expected {} spatial dimensions, with or without channels before them",
          options_.name, field.name, field.shape.str(), axes);
    check(spatial_sizes(field, axes) == spatial_sizes(first, axes), kJoin,
          "{}: '{}' has samples {}, but '{}' has {}; "
          "expected the same spatial sizes",
          options_.name, field.name, field.shape.str(), first.name, first.shape.str());
    check(field.dtype == first.dtype, kJoin, "{}: '{}' is {}, but '{}' is {}; expected one type", options_.name,
          field.name, name_of(field.dtype), first.name, name_of(first.dtype));
    channels += channels_of(field, axes);
  }
  std::vector<Field> out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (i == places.front()) out.push_back({options_.name, spatial_sizes(first, axes).batched(channels), first.dtype});
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
      for (const std::size_t place : places) {
        std::memcpy(to, in[place], shape[place].bytes());
        to += shape[place].bytes();
      }
    }
    if (std::ranges::find(places, i) == places.end()) std::memcpy(out[next++], in[i], shape[i].bytes());
  }
}

}  // namespace lockstep::data
