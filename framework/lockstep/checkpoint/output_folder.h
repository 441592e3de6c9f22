// The folder of output of a job: locked, held open, and known by its run's id. Somebody may move it, remove it, or put
// another job's folder in its place while the job runs: folder() says each time where the job may write, which is never
// the folder of another job or run. For one process of a job (rank 0); any thread.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lockstep/checkpoint/directory_lock.h"

namespace lockstep::checkpoint {

class OutputFolder {
 public:
  // Makes the folder if need be and locks it, as DirectoryLock does. Throws Error.
  explicit OutputFolder(const std::filesystem::path& path, std::chrono::milliseconds grace = std::chrono::seconds(5));

  std::string warning() const;                     // of the lock
  std::optional<std::string> run() const;          // the run that owns the folder; empty: none yet
  std::shared_ptr<const io::Folder> held() const;  // as it was locked, without looking again
  void begin(const std::string& run);              // from here on it is this run's

  // Where to write now, after begin():
  // - the folder of the job, as long as its path leads there;
  // - the path's folder, locked anew, where no other run has a folder there: it was moved or removed, and is made
  // again;
  // - the folder of the job under the path it has now, where another job has taken the path;
  // - a new one beside it, PATH.RUN, where the folder of the job is gone as well.
  // A run.json that is gone is written again. Says in the log whenever something changes. Throws Error where there is
  // none.
  std::shared_ptr<const io::Folder> folder();

 private:
  struct Attempt;

  bool is_ours(const io::Folder& folder) const;
  void keep_run_id(const io::Folder& folder) const;
  Attempt take(const std::filesystem::path& path) const;
  std::shared_ptr<const io::Folder> go_on_elsewhere(const Attempt& attempt);

  mutable std::mutex mutex_;  // of what follows
  std::filesystem::path path_;
  std::string run_;
  std::unique_ptr<DirectoryLock> lock_;
  bool away_ = false;  // another job has the path, and the folder is held by its descriptor alone
};

// For the other processes of a job, which hold no folder: where the run `run` of the output `path` writes, that path or
// PATH.RUN; empty where neither folder is that run's. Throws Error where run.json cannot be read.
std::optional<io::Folder> find_folder_of_run(const std::filesystem::path& path, const std::string& run);

}  // namespace lockstep::checkpoint
