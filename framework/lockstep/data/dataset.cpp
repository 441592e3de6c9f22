#include "lockstep/data/dataset.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::data {

void check_fields(std::string_view site, const std::vector<Field>& fields) {
  check(!fields.empty(), site, "there are no fields, expected at least one");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const Field& field = fields[i];
    check(!field.name.empty(), site, "field {} has no name", i);
    const auto same = [&](const Field& other) { return other.name == field.name; };
    check(std::ranges::count_if(fields, same) == 1, site, "two fields are called '{}'", field.name);
    const bool positive = std::ranges::all_of(field.shape.dims(), [](std::int64_t d) { return d >= 0; });
    check(positive, site, "field '{}': shape {} has a negative dimension", field.name, field.shape.str());
  }
}

std::size_t find_field(std::string_view site, const std::vector<Field>& fields, std::string_view name) {
  std::string names;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return i;
    names += (i ? ", " : "") + fields[i].name;
  }
  fail(site, "no field '{}', there are: {}", name, names);
}

void Dataset::read_random(std::int64_t index, const SampleKey& /*key*/, std::span<std::byte* const> out) const {
  read(index, out);
}

void Dataset::check_index(std::int64_t index) const {
  if (index >= 0 && index < size()) return;  // check() would make the description for every sample
  fail("dataset", "{}: sample {}, expected 0 to {}", describe(), index, size() - 1);
}

}  // namespace lockstep::data
