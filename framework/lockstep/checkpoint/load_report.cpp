#include "lockstep/checkpoint/load_report.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kNamesInMessage = 10;

void append(std::string& text, const char* kind, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text += formatted("; {} {}: ", names.size(), kind);
  const std::size_t shown = std::min(names.size(), kNamesInMessage);
  for (std::size_t i = 0; i < shown; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (shown < names.size()) text += formatted(" and {} more", names.size() - shown);
}

}  // namespace

std::string LoadReport::str() const {
  std::string text =
      formatted("{} tensor{} fit{}", loaded.size(), loaded.size() == 1 ? "" : "s", loaded.size() == 1 ? "s" : "");
  append(text, "missing", missing);
  append(text, "unexpected", unexpected);
  append(text, "of another shape or type", mismatched);
  return text;
}

void LoadReport::require_complete(std::string_view site, const std::string& file) const {
  check(complete(), site, "{}{}{}", file, file.empty() ? "" : ": ", str());
}

}  // namespace lockstep::checkpoint
