#include "lockstep/launch/settings.h"

#include <unistd.h>

#include <charconv>
#include <sstream>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSite = "settings";
constexpr std::string_view kNameCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::size_t kLongestLine = 65536;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

Settings Settings::of_environment() {
  Settings found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    const std::string name(text.substr(0, equals));
    found.settings_[name] = {std::string(text.substr(equals + 1)), name + " in the environment"};
  }
  return found;
}

Settings Settings::of_text(std::string_view text, const std::string& file) {
  Settings found;
  std::istringstream lines{std::string(text)};
  std::int64_t number = 0;
  for (std::string raw; std::getline(lines, raw);) {
    const std::string here = formatted("{}:{}", file, ++number);
    check(raw.size() <= kLongestLine && is_utf8(raw) && raw.find('\0') == raw.npos && !raw.ends_with('\r'), kSite,
          "{}: expected a line of text, NAME=VALUE, with a Unix line end", here);
    std::string_view line = trimmed(raw);
    if (line.empty() || line.starts_with('#')) continue;
    if (line.starts_with("export ")) line = trimmed(line.substr(7));
    const std::size_t equals = line.find('=');
    const std::string name(line.substr(0, equals));
    check(equals != line.npos && !name.empty() && name.find_first_not_of(kNameCharacters) == name.npos, kSite,
          "{}: '{}', expected NAME=VALUE without blanks around '='", here, line.substr(0, 80));
    std::string_view value = line.substr(equals + 1);
    const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
    if (quoted) value = value.substr(1, value.size() - 2);
    const auto [at, is_new] =
        found.settings_.try_emplace(name, Setting{std::string(value), formatted("{}: {}", here, name)});
    check(is_new, kSite, "{}: {} is set in {} already, expected once", here, name, at->second.origin);
  }
  return found;
}

const Setting* Settings::find(const std::string& name) const {
  const auto found = settings_.find(name);
  return found == settings_.end() || found->second.value.empty() ? nullptr : &found->second;
}

std::optional<std::int64_t> Settings::number(const std::string& name, std::int64_t least, std::int64_t most) const {
  const Setting* setting = find(name);
  if (setting == nullptr) return std::nullopt;
  const std::string& text = setting->value;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size() && value >= least && value <= most, kSite,
        "{} is '{}', expected a number from {} to {}", setting->origin, text.substr(0, 80), least, most);
  return value;
}

}  // namespace lockstep::launch
