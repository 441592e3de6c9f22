#include "tools/doctor/options.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "lockstep/core/error.h"

namespace lockstep::tools {
namespace {

int number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : -1;
}

}  // namespace

preflight::PortRange parse_ports(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t dash = text.find('-');
  const std::string_view whole(text);
  const int first = number(whole.substr(0, dash));
  const int last = dash == std::string::npos ? first : number(whole.substr(dash + 1));
  check(first >= 1024 && last >= first && last <= 65535, "doctor",
        "--ports is '{}', expected two numbers of 1024 to 65535 as in 60000-60015", text);
  return {first, last};
}

std::vector<std::string> split_words(const std::string& text) { return CLI::detail::split_up(text); }

}  // namespace lockstep::tools
