#include "tools/launcher/leftovers.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "tools/supervisor/descendants.h"
#include "tools/supervisor/proc_file.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

constexpr auto kOftenAtFirst = 30s;
constexpr auto kAskAgain = 1s;  // ranks that have started since

// Open MPI gives it; then Hydra.
bool has_rank(pid_t pid) {
  const std::string environment = supervisor::proc_file(fmt::format("/proc/{}/environ", pid));
  return std::ranges::any_of(std::array{"OMPI_COMM_WORLD_RANK=", "PMI_RANK="}, [&](const char* variable) {
    return environment.starts_with(variable) || environment.find('\0' + std::string(variable)) != environment.npos;
  });
}

// The processes that mpirun or its daemon started, not those that a rank started itself.
std::vector<pid_t> ranks_here() {
  std::vector<pid_t> ranks;
  for (const pid_t pid : supervisor::descendants()) {
    if (has_rank(pid) && !has_rank(supervisor::proc_stat(pid).value_or(supervisor::ProcStat{}).parent))
      ranks.push_back(pid);
  }
  return ranks;
}

void send_to(pid_t pid, int number) {
  ::kill(pid, number);  // one that has ended meanwhile needs none
  ::kill(pid, SIGCONT);
}

}  // namespace

Leftovers::Leftovers() { supervisor::adopt_orphans(); }

void Leftovers::look() {
  if (Clock::now() < next_) return;
  traces_.look();
  next_ = Clock::now() + (Clock::now() < began_ + kOftenAtFirst ? 500ms : 10'000ms);
}

void Leftovers::clear(const Say& say) {
  traces_.look();
  if (const std::string problem = supervisor::end_descendants().problem(); !problem.empty()) say(problem);
  traces_.remove();
}

void signal_ranks(int number) {
  for (const pid_t pid : ranks_here()) send_to(pid, number);
}

void EndRequest::send() {
  for (const pid_t pid : ranks_here()) {
    if (asked_.insert(pid).second) send_to(pid, SIGTERM);
  }
  sent_ = Clock::now();
}

bool EndRequest::due() const { return sent_ && Clock::now() >= *sent_ + kAskAgain; }

}  // namespace lockstep::launcher
