#include "tools/launcher/agents.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "lockstep/core/error.h"
#include "tools/launcher/sockets.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAgentVariable = "LOCKSTEP_LAUNCH_AGENT";  // "NAME TOKEN"
constexpr int kNotStarted = 255;                                 // as ssh ends

}  // namespace

Agents::Agents(Say say)
    : name_("lockstep-launch-" + hexadecimal(random_bytes(16))),
      token_(Secret::random()),
      reception_(listen_local(name_), token_, std::move(say)) {}

std::map<std::string, std::string> Agents::variables() const { return {{kAgentVariable, name_ + " " + token_.text()}}; }

void Agents::add_files(std::vector<pollfd>& files) const {
  reception_.add_files(files);
  for (const auto& agent : new_) files.push_back(agent->wanted());
  for (const auto& [host, agent] : agents_) files.push_back(agent->wanted());
}

std::vector<Run> Agents::look() {
  for (auto& agent : reception_.look()) new_.push_back(std::move(agent));
  std::vector<Run> wanted;
  std::vector<std::unique_ptr<Connection>> still;
  for (auto& agent : new_) {
    agent->pump();
    const auto message = agent->next();
    if (message) {
      wanted.push_back(read_run(*message));
      agents_[wanted.back().host] = std::move(agent);
    } else if (!agent->closed()) {
      still.push_back(std::move(agent));
    }
  }
  new_ = std::move(still);
  for (auto& [host, agent] : agents_) agent->pump();
  std::erase_if(agents_, [](const auto& entry) { return entry.second->closed(); });
  return wanted;
}

void Agents::print(const std::string& host, const std::string& text) {
  if (const auto found = agents_.find(host); found != agents_.end()) found->second->send(output(text));
}

void Agents::end(const std::string& host, int status) {
  if (const auto found = agents_.find(host); found != agents_.end()) found->second->send(ended(status));
}

int run_agent(const std::vector<std::string>& words) {
  const char* variable = std::getenv(kAgentVariable);
  check(variable != nullptr, "launch",
        "launch-agent is for mpirun below `lockstep launch`, expected {} in the environment", kAgentVariable);
  check(words.size() >= 3 && words[0] == "host", "launch",
        "launch-agent has {} words, expected launch-agent host NAME COMMAND...", words.size());
  const std::string text(variable);
  const std::size_t space = text.find(' ');
  check(space != text.npos, "launch", "{} is not of the form 'NAME TOKEN'", kAgentVariable);
  Connection launcher(connect_local(text.substr(0, space)), "the launcher", Handshake::Side::Client,
                      Secret(text.substr(space + 1), kAgentVariable));
  const std::vector<std::string> command(words.begin() + 2, words.end());
  bool asked = false;
  for (;;) {
    launcher.pump();
    if (launcher.ready() && !std::exchange(asked, launcher.ready()))
      launcher.send(to_message(Run{.host = words[1], .command = fmt::format("{}", fmt::join(command, " "))}));
    while (const auto message = launcher.next()) {
      if (message->kind == Kind::Ended) return read_number(*message);
      if (message->kind == Kind::Output) std::fputs(read_text(*message).c_str(), stderr);
    }
    if (launcher.closed()) return kNotStarted;
    std::vector<pollfd> files{launcher.wanted()};
    wait_for(files, 1000ms);
  }
}

}  // namespace lockstep::launcher
