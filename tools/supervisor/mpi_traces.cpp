#include "tools/supervisor/mpi_traces.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "tools/supervisor/descendants.h"
#include "tools/supervisor/proc_file.h"

namespace lockstep::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSharedMemory = "/dev/shm/";

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The file of a line of /proc/PID/maps: "7f00-7f20 rw-s 0000 00:01 42   /dev/shm/name".
std::string_view mapped_file(std::string_view line) {
  const std::size_t at = line.find('/');
  return at == line.npos || line.ends_with(" (deleted)") ? std::string_view{} : line.substr(at);
}

template <class Visit>
void each_mapped_file(const fs::path& process, Visit visit) {
  std::istringstream maps(proc_file(process / "maps"));
  for (std::string line; std::getline(maps, line);) {
    if (const std::string_view file = mapped_file(line); !file.empty()) visit(file);
  }
}

// "vader_segment.HOST.UID.JOB.RANK", "osc_sm.HOST.JOB...": whose they are stands in their names.
bool is_open_mpis(std::string_view name) { return name.starts_with("vader_segment.") || name.starts_with("osc_sm."); }

// "/tmp/ompi.HOST.UID/pid.4711", or jf.FAMILY where a daemon made it; empty: the path has no such folder.
fs::path session_folder(const fs::path& file) {
  for (fs::path at = file; at.has_relative_path(); at = at.parent_path()) {
    const std::string name = at.filename(), above = at.parent_path().filename();
    if (above.starts_with("ompi.") && (name.starts_with("pid.") || name.starts_with("jf."))) return at;
  }
  return {};
}

bool is_mine(const fs::path& path, mode_t kind) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && (found.st_mode & S_IFMT) == kind && found.st_uid == ::geteuid();
}

// The mpirun that made it lives, or whoever has its number now; or a process has a file in it mapped, as all of Open
// MPI's do.
bool is_used(const fs::path& session, const std::set<fs::path>& mapped) {
  const std::string name = session.filename();
  if (name.starts_with("pid.") && fs::exists("/proc/" + name.substr(4))) return true;
  const auto after = mapped.lower_bound(session);
  return after != mapped.end() && session_folder(*after) == session;
}

// Of all processes that may be looked at; those of other users have not mapped what is mine alone.
std::set<fs::path> mapped_somewhere() {
  std::set<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    if (!number<int>(at->path().filename().string())) continue;
    each_mapped_file(at->path(), [&](std::string_view file) { files.emplace(file); });
  }
  return files;
}

bool names_job(std::string_view name, const std::string& job) {
  return is_open_mpis(name) && name.find("." + job + ".") != name.npos;
}

}  // namespace

void MpiTraces::look() {
  for (const pid_t pid : descendants()) {
    processes_.insert(pid);
    const fs::path process = "/proc/" + std::to_string(pid);
    const std::string environment = proc_file(process / "environ");
    for (std::size_t at = 0; at < environment.size();) {
      const std::string_view variable(environment.c_str() + at);
      at += variable.size() + 1;
      constexpr std::string_view kJob = "PMIX_NAMESPACE=", kFolder = "OMPI_MCA_orte_jobfam_session_dir=";
      if (variable.starts_with(kFolder)) folders_.insert(session_folder(variable.substr(kFolder.size())));
      if (!variable.starts_with(kJob)) continue;
      if (const auto job = number<std::uint32_t>(variable.substr(kJob.size()))) jobs_.insert(fmt::format("{:x}", *job));
    }
    each_mapped_file(process, [&](std::string_view file) {
      if (file.starts_with(kSharedMemory) && is_open_mpis(file.substr(kSharedMemory.size()))) files_.emplace(file);
      if (file.find("/ompi.") != file.npos) folders_.insert(session_folder(file));
    });
  }
  folders_.erase(fs::path());
}

std::size_t MpiTraces::remove() {
  std::error_code error;
  for (fs::directory_iterator at(fs::temp_directory_path(error), error), end; !error && at != end;
       at.increment(error)) {
    if (!at->path().filename().string().starts_with("ompi.")) continue;
    for (const int pid : processes_) {
      const fs::path folder = at->path() / fmt::format("pid.{}", pid);
      if (is_mine(folder, S_IFDIR)) folders_.insert(folder);
    }
  }
  for (fs::directory_iterator at(kSharedMemory, error), end; !error && at != end; at.increment(error)) {
    for (const std::string& job : jobs_) {
      if (names_job(at->path().filename().string(), job)) files_.insert(at->path());
    }
  }
  std::size_t removed = 0;
  const std::set<fs::path> mapped = files_.empty() && folders_.empty() ? std::set<fs::path>() : mapped_somewhere();
  for (const fs::path& file : files_) {
    std::error_code failed;
    if (mapped.count(file) == 0 && is_mine(file, S_IFREG) && fs::remove(file, failed)) ++removed;
  }
  for (const fs::path& folder : folders_) {
    std::error_code failed;
    if (!is_mine(folder, S_IFDIR) || is_used(folder, mapped)) continue;
    fs::remove_all(folder, failed);
    if (!failed) ++removed;
  }
  files_.clear();
  folders_.clear();
  processes_.clear();
  return removed;
}

std::string traces_sweep(const std::set<std::string>& jobs) {
  std::string words;
  for (const std::string& job : jobs) {
    words += fmt::format(
        "for f in /dev/shm/vader_segment.*.{0}.* /dev/shm/osc_sm.*.{0}.*; do [ -f \"$f\" ] && [ ! -L \"$f\" ] && "
        "[ -O \"$f\" ] && ! cat /proc/[0-9]*/maps 2>/dev/null | grep -qF \"$f\" && rm -f \"$f\"; done; ",
        job);
    const auto number = std::stoul(job, nullptr, 16);
    words += fmt::format(
        "for d in \"${{TMPDIR:-/tmp}}\"/ompi.*/jf.{}; do [ -d \"$d\" ] && [ ! -L \"$d\" ] && [ -O \"$d\" ] && "
        "! cat /proc/[0-9]*/maps 2>/dev/null | grep -qF \"$d/\" && rm -rf \"$d\"; done; ",
        number >> 16);
  }
  return words;
}

}  // namespace lockstep::supervisor
