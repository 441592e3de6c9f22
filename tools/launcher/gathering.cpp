#include "tools/launcher/gathering.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <vector>

#include "lockstep/core/exit_status.h"
#include "tools/launcher/say.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kGatheringPoll = 200ms;
constexpr auto kWord = 15s;  // between two lines about missing nodes

Done ended_by(int number, const std::string& source) {
  return {.status = 128 + number, .reason = fmt::format("signal {} came to {}", number, source)};
}

std::optional<Done> look_for_signals(Rendezvous& rendezvous, supervisor::Signals& signals) {
  for (const auto& news : rendezvous.look()) {
    if (news.message && news.message->kind == Kind::Signal && read_number(*news.message) != SIGUSR1)
      return ended_by(read_number(*news.message), rendezvous.roster().name_of(news.node));
  }
  while (const auto number = signals.next()) {
    if (*number != SIGUSR1) return ended_by(*number, "node 0");
  }
  return std::nullopt;
}

}  // namespace

std::optional<Done> gather(const GatheringOptions& options, Rendezvous& rendezvous, supervisor::Signals& signals) {
  const Roster& roster = rendezvous.roster();
  const auto began = Clock::now();
  auto next_word = began + kWord;
  while (!roster.complete()) {
    std::vector<pollfd> files{{signals.descriptor(), POLLIN, 0}};
    rendezvous.add_files(files);
    wait_for(files, kGatheringPoll);
    if (auto end = look_for_signals(rendezvous, signals)) return end;
    if (roster.complete()) break;
    const auto passed = std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - began);
    if (Clock::now() > began + options.limit)
      return Done{.status = 1,
                  .reason = fmt::format("{} of {} did not join within {} s; there: {}", roster.missing(),
                                        roster.nodes(), options.limit.count(), roster.present())};
    if (Clock::now() > next_word) {
      say(fmt::format("waiting for {} of {} ({} s of {} s)", roster.missing(), roster.nodes(), passed.count(),
                      options.limit.count()));
      next_word = Clock::now() + kWord;
    }
  }
  const auto problems = roster.problems(options.allow_differences);
  if (problems.empty()) return std::nullopt;
  return Done{
      .status = kExitCommandLine,
      .reason = fmt::format("the nodes do not start the same job:\n  {}\nexpected the same command and programs on "
                            "all; --allow-differences has each node run its own",
                            fmt::join(problems, "\n  "))};
}

}  // namespace lockstep::launcher
