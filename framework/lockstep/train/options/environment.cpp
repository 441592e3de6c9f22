#include "lockstep/train/options/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace lockstep::train {

void EnvironmentValues::apply(std::span<const OptionRow> rows) {
  for (const OptionRow& row : rows) {
    const char* value = row.variable.empty() ? nullptr : std::getenv(row.variable.c_str());
    CLI::Option* option = app_.get_option("--" + row.name);
    if (value == nullptr || *value == '\0' || option->count() > 0) continue;
    variables_[row.name] = row.variable;  // before the value is read, whose errors are located
    option->add_result(value);
    option->run_callback();
  }
}

std::string EnvironmentValues::located(const std::string& error) const {
  const std::size_t begin = error.find("--");
  if (begin == error.npos) return error;
  const std::size_t end = std::min(error.find_first_of(" :,=", begin), error.size());
  const auto found = variables_.find(error.substr(begin + 2, end - begin - 2));
  return found == variables_.end() ? error : fmt::format("{}; the value is from {}", error, found->second);
}

}  // namespace lockstep::train
