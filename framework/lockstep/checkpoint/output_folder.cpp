#include "lockstep/checkpoint/output_folder.h"

#include <fmt/format.h>

#include <system_error>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

void make_directories(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  check(!error, "output", "'{}' cannot be made a directory: {}", path.string(), error.message());
}

std::unique_ptr<DirectoryLock> lock_at(const fs::path& path, std::chrono::milliseconds grace) {
  make_directories(path);
  return std::make_unique<DirectoryLock>(path, grace);
}

// Returns the reason why `folder` belongs to another run; empty: it belongs to this run or to none.
std::string stranger_in(const io::Folder& folder, const std::string& run) {
  if (const auto found = read_run_id(folder))
    return *found == run ? "" : fmt::format("it is the folder of run {}", *found);
  const auto checkpoints = folder.find_inside("checkpoints");
  return checkpoints && !list(*checkpoints).empty() ? "it contains checkpoints and no run.json" : "";
}

}  // namespace

// The result of an attempt to lock a path that this job does not hold.
struct OutputFolder::Attempt {
  std::unique_ptr<DirectoryLock> lock = nullptr;  // null: the attempt failed
  std::string others = {};                        // the reason, if another job has the path
  std::string failure = {};                       // the reason, if there is another one
};

OutputFolder::OutputFolder(const fs::path& path, std::chrono::milliseconds grace)
    : path_(path), lock_(lock_at(path, grace)) {}

std::string OutputFolder::warning() const {
  const std::scoped_lock guard(mutex_);
  return lock_->warning();
}

std::optional<std::string> OutputFolder::run() const { return read_run_id(*held()); }

std::shared_ptr<const io::Folder> OutputFolder::held() const {
  const std::scoped_lock guard(mutex_);
  return lock_->folder();
}

void OutputFolder::begin(const std::string& run) {
  const std::scoped_lock guard(mutex_);
  run_ = run;
  write_run_id(*lock_->folder(), run);
}

std::shared_ptr<const io::Folder> OutputFolder::folder() {
  const std::scoped_lock guard(mutex_);
  const bool ours = lock_->in_place() && is_ours(*lock_->folder());
  if (ours) keep_run_id(*lock_->folder());
  if (ours && lock_->folder()->is_at(path_)) {
    away_ = false;
    return lock_->folder();
  }
  Attempt attempt = take(path_);
  if (attempt.lock) {
    log()->warn("{}/.lock was removed or replaced; it is created and locked again", path_.string());
    if (!attempt.lock->warning().empty()) log()->warn("{}", attempt.lock->warning());
    lock_ = std::move(attempt.lock);
    away_ = false;
    return lock_->folder();
  }
  if (!ours) return go_on_elsewhere(attempt);
  auto now = std::make_shared<const io::Folder>(lock_->folder()->renamed());
  if (!std::exchange(away_, true))
    log()->warn("{} is no longer the folder of this job ({}{}); the job's folder is now {}, and the job goes on there",
                path_.string(), attempt.others, attempt.failure, now->path().string());
  return now;
}

bool OutputFolder::is_ours(const io::Folder& folder) const {
  const auto found = read_run_id(folder);
  return !found || *found == run_;
}

// Restores run.json: without the id, the folder would belong to no run.
void OutputFolder::keep_run_id(const io::Folder& folder) const {
  if (read_run_id(folder)) return;
  write_run_id(folder, run_);
  log()->warn("{}: the file with the id of the run was removed or damaged; it is written again",
              (folder.path() / "run.json").string());
}

OutputFolder::Attempt OutputFolder::take(const fs::path& path) const {
  Attempt attempt;
  try {
    make_directories(path);
    auto folder = std::make_shared<const io::Folder>(path);
    attempt.others = stranger_in(*folder, run_);
    if (!attempt.others.empty()) return attempt;
    auto lock = std::make_unique<DirectoryLock>(std::move(folder), std::chrono::milliseconds(0));
    attempt.others = stranger_in(*lock->folder(), run_);  // the lock is held, so no other job can begin there
    if (!attempt.others.empty()) return attempt;
    write_run_id(*lock->folder(), run_);
    attempt.lock = std::move(lock);
  } catch (const FolderInUse& error) {
    attempt.others = error.what();
  } catch (const std::exception& error) {
    attempt.failure = error.what();
  }
  return attempt;
}

// Called when the folder of the job is gone and its path cannot be locked, for the reason in `attempt`.
std::shared_ptr<const io::Folder> OutputFolder::go_on_elsewhere(const Attempt& attempt) {
  if (attempt.others.empty()) throw Error(attempt.failure);
  const fs::path own = path_beside(path_, run_);
  Attempt beside = take(own);
  if (!beside.lock)
    fail("output", "{} belongs to another job ({}), and {} cannot be used instead: {}{}", path_.string(),
         attempt.others, own.string(), beside.others, beside.failure);
  log()->warn("{} belongs to another job now ({}); this job goes on in {}; resume it with --output {}", path_.string(),
              attempt.others, own.string(), own.string());
  lock_ = std::move(beside.lock);
  path_ = own;
  away_ = false;
  return lock_->folder();
}

std::optional<io::Folder> find_folder_of_run(const fs::path& path, const std::string& run) {
  for (const fs::path& at : {path, path_beside(path, run)}) {
    auto folder = io::Folder::find(at);
    if (folder && read_run_id(*folder) == run) return folder;
  }
  return std::nullopt;
}

}  // namespace lockstep::checkpoint
