// The text of a normalisation, JSON:
// {"version": 1, "fields": [{"field": "density", "log_offset": 1e-3, "channel_axis": 0, "shift": [..], "scale": [..]}]}
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::data {
namespace {

using nlohmann::json;

constexpr int kTextVersion = 1;

const json& member(const json& object, const char* name) {
  check(object.is_object() && object.contains(name), "normalisation", "the text lacks \"{}\"", name);
  return object.at(name);
}

std::vector<double> numbers(const json& list, const char* name) {
  check(list.is_array(), "normalisation", "\"{}\" is no list, expected numbers", name);
  std::vector<double> values;
  for (const json& value : list) {
    check(value.is_number(), "normalisation", "\"{}\" has an entry that is no number", name);
    values.push_back(value.get<double>());
  }
  return values;
}

FieldNormalisation entry_of(const json& object) {
  FieldNormalisation entry;
  const json& name = member(object, "field");
  check(name.is_string(), "normalisation", "\"field\" is no text, expected the name of a field");
  entry.field = name.get<std::string>();
  const json& axis = member(object, "channel_axis");
  check(axis.is_number_integer(), "normalisation", "\"channel_axis\" of '{}' is no integer", printable(entry.field));
  entry.channel_axis = axis.get<std::int64_t>();
  if (const json& offset = member(object, "log_offset"); !offset.is_null()) {
    check(offset.is_number(), "normalisation", "\"log_offset\" of '{}' is neither a number nor null",
          printable(entry.field));
    entry.log_offset = offset.get<double>();
  }
  entry.shift = numbers(member(object, "shift"), "shift");
  entry.scale = numbers(member(object, "scale"), "scale");
  return entry;
}

}  // namespace

std::string Normalisation::text() const {
  json list = json::array();
  for (const FieldNormalisation& entry : fields_) {
    list.push_back({{"field", entry.field},
                    {"log_offset", entry.log_offset ? json(*entry.log_offset) : json()},
                    {"channel_axis", entry.channel_axis},
                    {"shift", entry.shift},
                    {"scale", entry.scale}});
  }
  return json{{"version", kTextVersion}, {"fields", list}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

Normalisation Normalisation::parse(std::string_view text) {
  const json whole = json::parse(text, nullptr, false);
  check(!whole.is_discarded(), "normalisation", "the text is not JSON");
  const json& version = member(whole, "version");
  check(version.is_number_integer() && version.get<std::int64_t>() == kTextVersion, "normalisation",
        "the text has version {}, expected {}", version.dump(), kTextVersion);
  const json& list = member(whole, "fields");
  check(list.is_array(), "normalisation", "\"fields\" is no list");
  std::vector<FieldNormalisation> entries;
  for (const json& object : list) entries.push_back(entry_of(object));
  return Normalisation(std::move(entries));
}

}  // namespace lockstep::data
