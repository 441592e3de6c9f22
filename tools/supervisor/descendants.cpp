#include "tools/supervisor/descendants.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <thread>

#include "lockstep/core/error.h"
#include "tools/supervisor/proc_file.h"

namespace lockstep::supervisor {
namespace {

// A program without mpirun has this process of Open MPI beside it, which ends soon after it and clears its files away.
constexpr std::string_view kDaemon = "orted";
constexpr std::chrono::seconds kDaemonsTime{10};

bool is_daemon(pid_t pid) { return proc_file(fmt::format("/proc/{}/comm", pid)) == fmt::format("{}\n", kDaemon); }

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc{} || end != name.data() + name.size()) continue;
    const auto stat = proc_stat(pid);
    if (stat && stat->state != 'Z') children.emplace(stat->parent, pid);
  }
  return children;
}

}  // namespace

void adopt_orphans() { check_call(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, "run", "PR_SET_CHILD_SUBREAPER"); }

std::vector<pid_t> descendants() {
  const auto children = children_by_parent();
  std::vector<pid_t> found, open{getpid()};
  while (!open.empty()) {
    const pid_t parent = open.back();
    open.pop_back();
    for (auto [at, end] = children.equal_range(parent); at != end; ++at) {
      found.push_back(at->second);
      open.push_back(at->second);
    }
  }
  return found;
}

std::string EndedDescendants::problem() const {
  if (left.empty()) return "";
  return fmt::format("processes of the job that SIGKILL does not end: {}; they may wait for a file system that is away",
                     fmt::join(left, ", "));
}

EndedDescendants end_descendants() {
  std::set<pid_t> ended;
  const auto daemons_end = std::chrono::steady_clock::now() + kDaemonsTime;
  const auto deadline = daemons_end + std::chrono::seconds(10);
  for (;;) {
    const std::vector<pid_t> left = descendants();
    const bool patient = std::chrono::steady_clock::now() < daemons_end;
    for (const pid_t pid : left) {
      if (patient && is_daemon(pid)) continue;
      ended.insert(pid);
      kill(pid, SIGKILL);  // one that cannot be ended is reported below
    }
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    if (left.empty() || std::chrono::steady_clock::now() >= deadline) return {ended.size(), left};
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace lockstep::supervisor
