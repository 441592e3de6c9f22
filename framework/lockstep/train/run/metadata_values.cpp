#include "lockstep/train/run/metadata_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

bool is_empty(const nlohmann::json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_array() && value.empty();
}

}  // namespace

std::string text_of(const nlohmann::json& value) {
  if (is_empty(value)) return "none";
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const nlohmann::json& metadata_entry(const nlohmann::json& metadata, std::string_view name, std::string_view file) {
  const auto found = metadata.find(name);
  check(found != metadata.end(), kResumeSite, "{}: its metadata has no '{}'", file, name);
  return *found;
}

const nlohmann::json& options_of(const nlohmann::json& metadata, std::string_view file) {
  const nlohmann::json& options = metadata_entry(metadata, "options", file);
  check(options.is_object(), kResumeSite, "{}: 'options' in its metadata cannot be used: expected an object", file);
  return options;
}

void check_same(const nlohmann::json& saved, const nlohmann::json& now, const std::string& key,
                const std::string& advice, const std::string& file) {
  const nlohmann::json &there = metadata_entry(saved, key, file), &here = metadata_entry(now, key, "this run");
  check(there == here, kResumeSite, "{}: '{}' is {}, this run has {}; {}", file, key, text_of(there), text_of(here),
        advice);
}

std::string spelled(std::string_view option, const nlohmann::json& value) {
  if (value.is_boolean()) return fmt::format("--{}{}", option, value.get<bool>() ? "" : "=false");
  if (!value.is_array()) return fmt::format("--{} {}", option, text_of(value));
  std::vector<std::string> parts;
  for (const nlohmann::json& each : value) parts.push_back(text_of(each));
  return fmt::format("--{} {}", option, fmt::join(parts, ","));
}

std::string as_before(std::string_view words) {
  const std::string keep = words.empty() ? "" : fmt::format("pass {} as before, or ", words);
  return keep + "omit --resume to begin a new run";
}
std::string as_before(std::string_view option, const nlohmann::json& before) {
  if (is_empty(before)) return fmt::format("leave out --{} as before, or omit --resume to begin a new run", option);
  return as_before(before.is_null() ? "" : spelled(option, before));
}

}  // namespace lockstep::train
