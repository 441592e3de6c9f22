#include "tools/launcher/environment_options.h"

#include <charconv>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep::launcher {
namespace {

struct NumberVariable {
  const char* name;
  int least, most;
};

constexpr NumberVariable kNodes{"NNODES", 1, 100000}, kNodeRank{"NODE_RANK", 0, 99999}, kPort{"MASTER_PORT", 1, 65535};

int number_or(int otherwise, const NumberVariable& wanted, const ReadVariable& variable) {
  const auto text = variable(wanted.name);
  if (!text) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  check(error == std::errc{} && end == text->data() + text->size() && value >= wanted.least && value <= wanted.most,
        "launch", "{} in the environment is '{}', expected {} to {}", wanted.name, text->substr(0, 80), wanted.least,
        wanted.most);
  return value;
}

}  // namespace

void read_environment(LaunchOptions& o, const ReadVariable& variable) {
  if (o.nodes == 0) o.nodes = number_or(0, kNodes, variable);
  if (o.node < 0) o.node = number_or(-1, kNodeRank, variable);
  if (o.meeting.port == 0) o.meeting.port = number_or(0, kPort, variable);
  if (o.meeting.address.empty()) o.meeting.address = variable("MASTER_ADDR").value_or("");
  if (o.ranks_per_node.empty()) o.ranks_per_node = variable("NPROC_PER_NODE").value_or("1");
}

}  // namespace lockstep::launcher
