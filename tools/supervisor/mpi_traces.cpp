#include "tools/supervisor/mpi_traces.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "lockstep/launch/host_list.h"
#include "tools/supervisor/descendants.h"
#include "tools/supervisor/proc_file.h"

namespace lockstep::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSharedMemory = "/dev/shm/";
constexpr std::string_view kNamedJob = "prterun-";  // PMIX_NAMESPACE of Open MPI 5: "prterun-HOST-PID@1"

template <class Number>
std::optional<Number> number(std::string_view text, int base = 10) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
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

// Whether it stands in a shell command as it is.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(
      text, [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-' || c == '/'; });
}
bool is_named_job(std::string_view job) { return job.starts_with(kNamedJob) && is_plain(job); }

// "vader_segment.HOST.UID.JOB.RANK", with Open MPI 5 sm_segment, and "osc_sm.HOST.JOB...": whose they are stands in
// their names.
bool is_segment(std::string_view name) { return name.starts_with("vader_segment.") || name.starts_with("sm_segment."); }
bool is_open_mpis(std::string_view name) { return is_segment(name) || name.starts_with("osc_sm."); }

// Takes the last part of a name off, with its dot: a host's name, which comes first, may have dots.
std::string_view take_last_part(std::string_view& name) {
  const std::size_t dot = std::min(name.rfind('.'), name.size());
  const std::string_view part = name.substr(std::min(dot + 1, name.size()));
  name = name.substr(0, dot);
  return part;
}

// The number of the process that made a session folder of Open MPI 5 (5.0.7) on this machine for this user:
// "prterun.HOST.PID.UID" of mpirun, "prted.HOST.PID.UID" of a daemon; 0: the name is none of these.
int maker_of_prrte_folder(std::string_view name) {
  static const launch::OwnNames own{.host = launch::OwnNames::of_this_machine().host};
  const std::string_view user = take_last_part(name), process = take_last_part(name);
  for (const std::string_view prefix : {"prterun.", "prted."}) {
    if (!name.starts_with(prefix)) continue;
    if (number<uid_t>(user) == ::geteuid() && launch::is_this_machine(name.substr(prefix.size()), own))
      return number<int>(process).value_or(0);
  }
  return 0;
}

// Such a folder, or Open MPI 4's "/tmp/ompi.HOST.UID/pid.4711", or jf.FAMILY there if a daemon made it; empty: the path
// has none.
fs::path session_folder(const fs::path& file) {
  for (fs::path at = file; at.has_relative_path(); at = at.parent_path()) {
    const std::string name = at.filename(), above = at.parent_path().filename();
    if (maker_of_prrte_folder(name) > 0) return at;
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

// The process that made a session folder, as its name says; 0: it does not say.
int maker(const fs::path& session) {
  const std::string name = session.filename();
  return name.starts_with("pid.") ? number<int>(name.substr(4)).value_or(0) : maker_of_prrte_folder(name);
}

bool is_mine(const fs::path& path, mode_t kind) {
  struct stat found {};
  return ::lstat(path.c_str(), &found) == 0 && (found.st_mode & S_IFMT) == kind && found.st_uid == ::geteuid();
}

// The mpirun that made it lives, or whoever has its number now; or a process has a file in it mapped, as all of Open
// MPI's do.
bool is_used(const fs::path& session, const std::set<fs::path>& mapped) {
  if (const int process = maker(session); process > 0 && fs::exists(fmt::format("/proc/{}", process))) return true;
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
      if (const std::string_view named = job.substr(0, job.rfind('@')); is_named_job(named)) jobs_.emplace(named);
    }
    each_mapped_file(process, [&](std::string_view file) { look_at(file); });
  }
  folders_.erase(fs::path());
}

void MpiTraces::look_at(std::string_view mapped) {
  if (mapped.starts_with(kSharedMemory)) {
    std::string_view name = mapped.substr(kSharedMemory.size());
    if (is_open_mpis(name)) files_.emplace(mapped);
    const bool segment = is_segment(name);
    take_last_part(name);
    if (const std::string_view job = take_last_part(name); segment && number<std::uint32_t>(job, 16))
      jobs_.emplace(job);
  }
  for (const char* folder : {"/ompi.", "/prterun.", "/prted."})
    if (mapped.find(folder) != mapped.npos) folders_.insert(session_folder(mapped));
}

void MpiTraces::add_folders_of_processes() {
  for (const fs::path& base : session_bases()) {
    std::error_code error;
    for (fs::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      if (processes_.contains(maker_of_prrte_folder(name))) folders_.insert(at->path());
      if (!name.starts_with("ompi.")) continue;
      for (const int pid : processes_) folders_.insert(at->path() / fmt::format("pid.{}", pid));
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
  std::string words, bases = R"("${TMPDIR:-/tmp}")";
  for (const fs::path& base : session_bases()) {
    if (is_plain(base.string())) bases += " " + base.string();
  }
  for (const std::string& job : jobs) {
    if (is_named_job(job)) {  // the daemon's number is in the folder's name, the job's name in that of a file
      words += fmt::format(
          R"sh(for b in {}; do for d in "$b"/prted.*; do p=${{d%.*}}; [ -d "$d" ] && [ ! -L "$d" ] && [ -O "$d" ] && )sh"
          R"sh([ ! -e /proc/${{p##*.}} ] && ls "$d"/* 2>/dev/null | grep -qF -- "-{}@" && )sh"
          R"sh(! cat /proc/[0-9]*/maps 2>/dev/null | grep -qF "$d/" && rm -rf "$d"; done; done; )sh",
          bases, job);
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
