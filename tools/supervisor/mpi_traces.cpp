#include "tools/supervisor/mpi_traces.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
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
constexpr std::string_view kNamedJob = "prterun-";  // PMIX_NAMESPACE of Open MPI 5: "prterun-HOST-PID@1"

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

// "vader_segment.HOST.UID.JOB.RANK", with Open MPI 5 sm_segment, and "osc_sm.HOST.JOB...": whose they are stands in
// their names.
bool is_segment(std::string_view name) { return name.starts_with("vader_segment.") || name.starts_with("sm_segment."); }
bool is_open_mpis(std::string_view name) { return is_segment(name) || name.starts_with("osc_sm."); }

// The last but `n` of the parts of a name that dots divide, from the end, as a host's name may have dots.
std::string_view part_from_end(std::string_view name, int n) {
  for (; n > 0; --n) name = name.substr(0, std::min(name.rfind('.'), name.size()));
  return name.substr(name.rfind('.') + 1);
}

// Of Open MPI 5: "prterun.HOST.PID.UID" of mpirun, "prted.HOST.PID.UID" of a daemon.
bool is_prrte_folder(std::string_view name) { return name.starts_with("prterun.") || name.starts_with("prted."); }

// Such a folder, or Open MPI 4's "/tmp/ompi.HOST.UID/pid.4711", or jf.FAMILY there if a daemon made it; empty: the path
// has none.
fs::path session_folder(const fs::path& file) {
  for (fs::path at = file; at.has_relative_path(); at = at.parent_path()) {
    const std::string name = at.filename(), above = at.parent_path().filename();
    if (is_prrte_folder(name)) return at;
    if (above.starts_with("ompi.") && (name.starts_with("pid.") || name.starts_with("jf."))) return at;
  }
  return {};
}

// The folders in which mpirun makes those.
std::set<fs::path> session_bases() {
  std::error_code none;
  std::set<fs::path> bases{fs::temp_directory_path(none)};
  for (const char* variable : {"OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base"}) {
    if (const char* base = std::getenv(variable)) bases.insert(base);
  }
  return bases;
}

// The process that made a session folder, as its name says; empty: it does not say.
std::string owner(const fs::path& session) {
  const std::string name = session.filename();
  if (is_prrte_folder(name)) return std::string(part_from_end(name, 1));
  return name.starts_with("pid.") ? name.substr(4) : "";
}

bool is_mine(const fs::path& path, mode_t kind) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && (found.st_mode & S_IFMT) == kind && found.st_uid == ::geteuid();
}

// The mpirun that made it lives, or whoever has its number now; or a process has a file in it mapped, as all of Open
// MPI's do.
bool is_used(const fs::path& session, const std::set<fs::path>& mapped) {
  if (const std::string process = owner(session); !process.empty() && fs::exists("/proc/" + process)) return true;
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
      constexpr std::string_view kJob = "PMIX_NAMESPACE=";
      for (const std::string_view folder : {"OMPI_MCA_orte_jobfam_session_dir=", "PMIX_SERVER_TMPDIR="})
        if (variable.starts_with(folder)) folders_.insert(session_folder(variable.substr(folder.size())));
      if (!variable.starts_with(kJob)) continue;
      const std::string_view job = variable.substr(kJob.size());
      if (const auto numbered = number<std::uint32_t>(job)) jobs_.insert(fmt::format("{:x}", *numbered));
      if (job.starts_with(kNamedJob)) jobs_.emplace(job.substr(0, job.rfind('@')));
    }
    each_mapped_file(process, [&](std::string_view file) { look_at(file); });
  }
  folders_.erase(fs::path());
}

void MpiTraces::look_at(std::string_view mapped) {
  if (mapped.starts_with(kSharedMemory)) {
    const std::string_view name = mapped.substr(kSharedMemory.size());
    if (is_open_mpis(name)) files_.emplace(mapped);
    if (is_segment(name)) jobs_.emplace(part_from_end(name, 1));
  }
  for (const char* folder : {"/ompi.", "/prterun.", "/prted."})
    if (mapped.find(folder) != mapped.npos) folders_.insert(session_folder(mapped));
}

void MpiTraces::add_folders_of_processes() {
  for (const fs::path& base : session_bases()) {
    std::error_code error;
    for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      for (const int pid : processes_) {
        const std::string process = std::to_string(pid);
        if (is_prrte_folder(name) && owner(at->path()) == process) folders_.insert(at->path());
        if (name.starts_with("ompi.")) folders_.insert(at->path() / ("pid." + process));
      }
    }
  }
}

std::size_t MpiTraces::remove() {
  add_folders_of_processes();
  std::error_code error;
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
    if (job.starts_with(kNamedJob)) {  // the daemon's number is in the folder's name, the job's name in that of a file
      words += fmt::format(
          "for d in \"${{TMPDIR:-/tmp}}\"/prted.*; do p=${{d%.*}}; [ -d \"$d\" ] && [ ! -L \"$d\" ] && [ -O \"$d\" ] "
          "&& "
          "[ ! -e /proc/${{p##*.}} ] && ls \"$d\"/* 2>/dev/null | grep -qF -- \"-{}@\" && rm -rf \"$d\"; done; ",
          job);
      continue;
    }
    words += fmt::format(
        "for f in /dev/shm/vader_segment.*.{0}.* /dev/shm/sm_segment.*.{0}.* /dev/shm/osc_sm.*.{0}.*; do [ -f \"$f\" ] "
        "&& [ ! -L \"$f\" ] && "
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
