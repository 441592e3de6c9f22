// Values in the metadata of two runs, the one of a checkpoint and this one: how to find and to compare them, and the
// words of the messages about those that differ. Throws Error at site "resume". Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace lockstep::train {

inline constexpr const char* kResumeSite = "resume";

// Returns the value as a message shows it.
std::string text_of(const nlohmann::json& value);
// Return an entry, and the options, of the metadata in `file`; throw Error if there are none.
const nlohmann::json& metadata_entry(const nlohmann::json& metadata, std::string_view name, std::string_view file);
const nlohmann::json& options_of(const nlohmann::json& metadata, std::string_view file);
// Throws Error with `advice` unless both have an equal entry `key`.
void check_same(const nlohmann::json& saved, const nlohmann::json& now, const std::string& key,
                const std::string& advice, const std::string& file);

// Returns the words of a command line that give an option this value.
std::string spelled(std::string_view option, const nlohmann::json& value);
// Return the advice about options that prevent a resume; `words`: the options as they were, empty: unknown.
std::string as_before(std::string_view words);
std::string as_before(std::string_view option, const nlohmann::json& before);

}  // namespace lockstep::train
