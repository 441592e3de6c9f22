#include "tools/launcher/leftovers.h"

#include <fmt/format.h>
#include <signal.h>

#include <sstream>
#include <string>
#include <string_view>

#include "tools/supervisor/descendants.h"
#include "tools/supervisor/proc_file.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kOftenAtFirst = 30s;
constexpr std::string_view kRank = "OMPI_COMM_WORLD_RANK=";

bool has_rank(pid_t pid) {
  const std::string environment = supervisor::proc_file(fmt::format("/proc/{}/environ", pid));
  return environment.starts_with(kRank) || environment.find('\0' + std::string(kRank)) != environment.npos;
}

pid_t parent_of(pid_t pid) {
  const std::string text = supervisor::proc_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name_ends = text.rfind(')');
  char state = 'Z';
  pid_t parent = 0;
  if (name_ends != text.npos) std::istringstream(text.substr(name_ends + 1)) >> state >> parent;
  return parent;
}

}  // namespace

Leftovers::Leftovers() { supervisor::adopt_orphans(); }

void Leftovers::look() {
  if (Clock::now() < next_) return;
  traces_.look();
  next_ = Clock::now() + (Clock::now() < began_ + kOftenAtFirst ? 500ms : 10'000ms);
}

void Leftovers::clear() {
  traces_.look();
  supervisor::end_descendants();
  traces_.remove();
}

void signal_ranks(int number) {
  for (const pid_t pid : supervisor::descendants()) {
    if (!has_rank(pid) || has_rank(parent_of(pid))) continue;
    ::kill(pid, number);  // one that has ended meanwhile needs none
    ::kill(pid, SIGCONT);
  }
}

}  // namespace lockstep::launcher
