#include "tools/doctor/print.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "lockstep/core/printable.h"

namespace lockstep::tools {
namespace {

using preflight::Finding;
using preflight::Level;

std::string coloured(Level level) {
  std::string name = fmt::format("{:6}", preflight::name_of(level));
  if (isatty(STDOUT_FILENO) == 0) return name;
  const int colour = level == Level::Green ? 32 : level == Level::Yellow ? 33 : 31;
  return fmt::format("\033[{}m{}\033[0m", colour, name);
}

}  // namespace

void print_findings(const std::vector<Finding>& findings, int ranks, bool as_json) {
  const Level level = preflight::worst(findings);
  if (as_json) {
    const nlohmann::json report{
        {"level", preflight::name_of(level)}, {"ranks", ranks}, {"findings", preflight::to_json(findings)}};
    fmt::print("{}\n", report.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace));
    return;
  }
  for (const Finding& f : findings) {
    fmt::print("{} {:16} {}{}{}\n", coloured(f.level), f.check, printable(f.where), f.where.empty() ? "" : ": ",
               printable(f.what));
    if (!f.mend.empty()) fmt::print("{:23} -> {}\n", "", printable(f.mend));
  }
  fmt::print("{}\n", level == Level::Green    ? "all is well"
                     : level == Level::Yellow ? "the job will run; what is yellow makes it slow or is a risk"
                                              : "what is red has to be mended first");
}

}  // namespace lockstep::tools
