#include "lockstep/train/config_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>

namespace lockstep::train {
namespace {

constexpr std::uintmax_t kMostBytes = 1 << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& key, const std::string& what) {
  throw CLI::ValidationError("--config", fmt::format("{}: key {} {}", path, key, what));
}

}  // namespace

std::string ConfigFile::look_at(const std::string& path) {
  path_ = path;
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return "";  // CLI11 says so
  if (!std::filesystem::is_regular_file(path, error)) return fmt::format("{} is not a regular file", path);
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) return fmt::format("{}: {}", path, error.message());
  return bytes <= kMostBytes ? "" : fmt::format("{} has {} bytes, expected at most {}", path, bytes, kMostBytes);
}

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::string text(std::istreambuf_iterator<char>(input), {});
  refuse_repeated_keys(text);
  std::istringstream again(text);
  std::vector<CLI::ConfigItem> found = CLI::ConfigTOML::from_config(again);
  for (const CLI::ConfigItem& item : found) {
    const CLI::Option* option = item.name.size() > 1 ? app_.get_option_no_throw("--" + item.name) : nullptr;
    if (option != nullptr && option->get_items_expected_max() <= 1 && item.inputs.size() > 1)
      refuse(path_, item.name,
             fmt::format("has {} values, expected one (in quotes, if it has commas or blanks)", item.inputs.size()));
  }
  return found;
}

void ConfigFile::refuse_repeated_keys(const std::string& text) const {
  std::istringstream lines(text);
  std::set<std::string> keys;
  for (std::string line; std::getline(lines, line);) {
    CLI::detail::trim(line);
    const std::size_t equals = line.find('=');
    if (equals == line.npos || line.front() == '#' || line.front() == ';') continue;
    std::string key = CLI::detail::trim_copy(line.substr(0, equals));
    CLI::detail::remove_quotes(key);
    if (!keys.insert(key).second) refuse(path_, key, "stands there twice, expected once");
  }
}

}  // namespace lockstep::train
