#include "lockstep/train/options/config_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>

#include "lockstep/core/error.h"
#include "lockstep/train/options/flat_toml.h"
#include "lockstep/train/options/option_hints.h"

namespace lockstep::train {
namespace {

constexpr std::uintmax_t kMostBytes = 1 << 20;
constexpr const char* kOption = "--config";

}  // namespace

std::string ConfigFile::look_at(const std::string& path) {
  path_ = path;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";  // CLI11 reports that
  if (!std::filesystem::is_regular_file(path, error)) return fmt::format("{} is not a regular file", path);
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return fmt::format("{}: {}", path, error.message());
  return bytes <= kMostBytes ? "" : fmt::format("{} has {} bytes, expected at most {}", path, bytes, kMostBytes);
}

std::string ConfigFile::place(std::int64_t line) const { return fmt::format("{}, line {}", path_, line); }

void ConfigFile::refuse(const TomlEntry& entry, const std::string& what) const {
  throw CLI::ValidationError(kOption, fmt::format("{}: key {} {}", place(entry.line), entry.key, what));
}

// Returns the option of a key; null if a file may not set it.
const CLI::Option* ConfigFile::option(const std::string& key) const {
  if (key.size() < 2 || key == "config") return nullptr;
  const CLI::Option* found = app_.get_option_no_throw("--" + key);
  return found != nullptr && found->get_configurable() ? found : nullptr;
}

void ConfigFile::refuse_unknown(const std::vector<TomlEntry>& entries) const {
  constexpr std::size_t kMostShown = 5;
  std::vector<std::string> unknown;
  for (const TomlEntry& entry : entries) {
    if (option(entry.key) != nullptr) continue;
    std::vector<std::string> meant = similar_options(app_, entry.key);
    std::erase_if(meant, [this](const std::string& name) { return option(name) == nullptr; });
    unknown.push_back(fmt::format("line {}: unknown key {}{}", entry.line, entry.key,
                                  meant.empty() ? "" : fmt::format(", did you mean {}?", fmt::join(meant, ", "))));
  }
  if (unknown.empty()) return;
  const std::size_t more = unknown.size() > kMostShown ? unknown.size() - kMostShown : 0;
  unknown.resize(unknown.size() - more);
  throw CLI::ValidationError(
      kOption, fmt::format("{}, {}{}; expected names of options without their dashes", path_, fmt::join(unknown, "; "),
                           more > 0 ? fmt::format("; and {} more", more) : ""));
}

void ConfigFile::check_values(const TomlEntry& entry) const {
  const CLI::Option& taker = *option(entry.key);
  if (entry.values.empty()) refuse(entry, "has an empty list, expected a value");
  const int most = taker.get_items_expected_max();
  if (most <= 1 && entry.values.size() > 1)
    refuse(entry,
           fmt::format("has {} values, expected one (in quotes, if it has commas or blanks)", entry.values.size()));
  for (const TomlValue& value : entry.values) check_type(entry, value);
  constexpr std::array kSwitches{"true", "false", "on", "off", "yes", "no", "1", "0"};
  const std::string& first = entry.values.front().text;
  const bool is_switch = std::ranges::find(kSwitches, first) != kSwitches.end();
  if (most == 0 && !is_switch) refuse(entry, fmt::format("is {}, expected true or false", first));
}

// A file with a value of another type than its option is probably wrong in more than the quotes.
void ConfigFile::check_type(const TomlEntry& entry, const TomlValue& value) const {
  const auto declared = types_.find(option(entry.key));
  if (declared == types_.end()) return;
  const Type type = declared->second;
  if (value.is_text && type == Type::Number)
    refuse(entry, fmt::format("is the text \"{}\", expected a number, without quotes", value.text));
  if (value.is_text && type == Type::Switch)
    refuse(entry, fmt::format("is the text \"{}\", expected true or false, without quotes", value.text));
  if (type == Type::Text && value.is_boolean())
    refuse(entry, fmt::format("is the switch {}, expected a text; a text of this word has quotes", value.text));
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string text(std::istreambuf_iterator<char>(input), {});
  std::vector<TomlEntry> entries;
  try {
    entries = parse_flat_toml(text);
  } catch (const Error& error) {
    throw CLI::ValidationError(kOption, fmt::format("{}, {}", path_, error.what()));
  }
  refuse_unknown(entries);
  std::map<const CLI::Option*, Origin> said;
  std::vector<CLI::ConfigItem> found;
  for (const TomlEntry& entry : entries) {
    const CLI::Option* taker = option(entry.key);
    const auto [first, is_new] = said.try_emplace(taker, Origin{entry.line, entry.key});
    if (!is_new && first->second.key == entry.key)
      refuse(entry, fmt::format("occurs twice, first in line {}, expected once", first->second.line));
    if (!is_new)
      refuse(entry, fmt::format("contradicts key {} of line {}, expected one of the two", first->second.key,
                                first->second.line));
    check_values(entry);
    if (taker->count() == 0) given_.try_emplace(taker, first->second);  // else the command line's value counts
    CLI::ConfigItem item{.parents = {}, .name = entry.key, .inputs = {}};
    for (const TomlValue& value : entry.values) item.inputs.push_back(value.text);
    found.push_back(std::move(item));
  }
  return found;
}

std::string ConfigFile::located(const std::string& error) const {
  constexpr std::string_view kSite = "[options] ";
  const std::size_t begin = error.find("--");
  if (begin == error.npos) return error;
  const std::size_t end = std::min(error.find_first_of(" :,=", begin), error.size());
  const CLI::Option* about = app_.get_option_no_throw(error.substr(begin, end - begin));
  const auto origin = about == nullptr ? given_.end() : given_.find(about);
  if (origin == given_.end()) return error;
  const std::string head = fmt::format("{}: {}: key {}", kOption, place(origin->second.line), origin->second.key);
  if (begin != 0 && error.substr(0, begin) != kSite) return fmt::format("{}: {}", head, error);
  std::string what = error.substr(end);
  if (what.starts_with(": is ")) what.erase(0, 1);
  return head + what;
}

}  // namespace lockstep::train
