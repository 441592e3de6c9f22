#include "tools/supervisor/output_folder.h"

#include <fmt/format.h>

#include <chrono>
#include <system_error>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/directory_lock.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/core/error.h"
#include "lockstep/io/folder.h"

namespace lockstep::supervisor {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kGrace{1000};  // for a supervisor that is just ending
constexpr std::size_t kMostFiles = 10'000;

fs::path made(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  check(!error, "run", "{} cannot be made: {}; expected a writable --output", folder.string(), error.message());
  return folder;
}

checkpoint::DirectoryLock locked(const fs::path& output) {
  const fs::path logs = made(output / "logs");
  try {
    return checkpoint::DirectoryLock(logs, kGrace);
  } catch (const Error& error) {
    fail("run", "'{}' cannot be supervised, by one supervisor at a time: {}", output.string(), error.what());
  }
}

// Empty where nothing says it, or where it cannot be read now.
std::optional<std::string> run_in(const fs::path& path) {
  try {
    const auto folder = io::Folder::find(path);
    return folder ? checkpoint::read_run_id(*folder) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void add_files(const fs::path& folder, OutputFolder::Stamps& stamps) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;  // files may vanish meanwhile
    const std::string name = at->path().filename();
    const bool mine = folder.filename() == "logs" && (name.starts_with("supervisor.") || name == ".lock");
    if (mine || stamps.size() >= kMostFiles || !at->is_regular_file(gone)) continue;
    const OutputFolder::Stamp stamp{at->last_write_time(gone), at->file_size(gone)};
    if (!gone) stamps[at->path()] = stamp;
  }
}

// Adds the files of the folders in `folder`.
void add_inner_files(const fs::path& folder, OutputFolder::Stamps& stamps) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    if (at->is_directory(gone)) add_files(at->path(), stamps);
  }
}

}  // namespace

OutputFolder::OutputFolder(fs::path folder) : path_(std::move(folder)), lock_(locked(path_)) {}

bool OutputFolder::is_held() const { return lock_.in_place() && lock_.folder()->is_at(path_ / "logs"); }

bool OutputFolder::keep() {
  if (is_held()) return false;
  lock_ = locked(path_);
  return true;
}

bool OutputFolder::note_run() {
  const auto found = run_in(path_);
  if (!found || *found == run_ || !is_held()) return false;
  run_ = *found;
  return true;
}

// The folder in which the run is now, other than ours; empty: none that can be found.
fs::path OutputFolder::moved_to() const {
  for (const fs::path& path : {checkpoint::path_beside(path_, run_), lock_.folder()->renamed().path().parent_path()}) {
    if (run_in(path) == run_) return path;
  }
  return {};
}

std::string OutputFolder::estrangement() const {
  if (run_.empty()) return "";
  const auto found = run_in(path_);
  if (found == run_) return "";
  const fs::path moved = moved_to();
  if (!found && moved.empty()) return "";
  return fmt::format(
      "'{}' is {}, and this job is run {}, {}", path_.string(),
      found ? fmt::format("the folder of run {} now", *found) : "no longer its folder", run_,
      moved.empty() ? "whose folder is gone; expected that folder there, or a new --output for a new run"
                    : fmt::format("which is in '{0}'; expected --output {0} in its command, to go on", moved.string()));
}

OutputFolder::Newest OutputFolder::newest() const {
  try {
    if (!estrangement().empty()) return {};
    const auto entries = checkpoint::list(path_ / "checkpoints");
    if (entries.empty()) return {};
    return {entries.back().step, entries.back().path, fs::last_write_time(entries.back().path)};
  } catch (const fs::filesystem_error& error) {
    fail("run", "{}", error.what());
  }
}

std::string OutputFolder::holder() const { return checkpoint::lock_holder(path_); }

OutputFolder::Stamps OutputFolder::stamps(const fs::path& folder) {
  Stamps stamps;
  add_files(folder, stamps);
  add_inner_files(folder, stamps);
  add_inner_files(folder / "logs", stamps);  // a run may have a folder of logs for each host
  return stamps;
}

}  // namespace lockstep::supervisor
