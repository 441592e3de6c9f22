#include "tools/picture/texts.h"

#include <fmt/format.h>

#include "lockstep/core/printable.h"

namespace lockstep::tools {
namespace {

constexpr std::size_t kWidest = 64;  // letters of an operation; `--plan` has the whole

}  // namespace

std::string escaped(std::string_view text) {  // for HTML-like labels and for quoted names
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\\':
        result += "&#92;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string shortened(const std::string& text) {
  return text.size() <= kWidest ? text : text.substr(0, kWidest - 3) + "...";
}

std::string slack(const std::string& text) {
  std::string spaces;
  for (std::size_t k = 0; k <= text.size() / 12; ++k) spaces += "&#160;";
  return spaces;
}

std::string numbers_of(const std::vector<std::size_t>& steps) {
  const auto number = [&](std::size_t k) { return static_cast<long>(steps[k]) + 1; };
  const long distance = steps.size() > 1 ? number(1) - number(0) : 0;
  bool equal = steps.size() >= 4;
  std::string list;
  for (std::size_t k = 0; k < steps.size(); ++k) {
    list += fmt::format("{}{}", k == 0 ? "" : ", ", number(k));
    equal = equal && (k == 0 || number(k) - number(k - 1) == distance);
  }
  return equal ? fmt::format("{} to {} by {}", number(0), number(steps.size() - 1), distance) : list;
}

std::string size_text(std::size_t bytes) {
  const auto amount = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  return bytes < 1048576 ? fmt::format("{:.1f} KiB", amount / 1024) : fmt::format("{:.1f} MiB", amount / 1048576);
}

std::string work_text(double flops) {
  return flops < 1e9 ? fmt::format("{:.1f} MFLOP", flops * 1e-6) : fmt::format("{:.2f} GFLOP", flops * 1e-9);
}

}  // namespace lockstep::tools
