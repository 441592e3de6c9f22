// The output folder of a job: locked, held open, and identified by the id of its run. While the job runs, a user may
// move or remove the folder, or put another job's folder in its place. folder() therefore finds the folder to write to
// each time; that is never the folder of another job or run. For one process of a job (rank 0); any thread.
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
  // Creates the folder if there is none and locks it, as DirectoryLock does. Throws Error.
  explicit OutputFolder(const std::filesystem::path& path, std::chrono::milliseconds grace = std::chrono::seconds(5));

  std::string warning() const;                     // the lock's warning; empty: none
  std::optional<std::string> run() const;          // id of the run that owns the folder; empty: none yet
  std::shared_ptr<const io::Folder> held() const;  // the locked folder, without a check of its path
  void begin(const std::string& run);              // gives the folder to this run

  // Returns the folder to write to; call begin() before. It is
  // - the folder of the job, as long as its path leads there;
  // - a folder at that path, created if need be and locked anew, if the folder of the job was moved or removed and no
  //   other run has a folder at the path;
  // - the folder of the job under its present path, if another job has taken the old path;
  // - a new folder PATH.RUN, if another job has taken the path and the folder of the job is gone.
  // Restores a missing run.json. Logs every change. Throws Error if no folder can be used.
  std::shared_ptr<const io::Folder> folder();

 private:
  struct Attempt;

  bool is_ours(const io::Folder& folder) const;
  void keep_run_id(const io::Folder& folder) const;
  Attempt take(const std::filesystem::path& path) const;
  std::shared_ptr<const io::Folder> go_on_elsewhere(const Attempt& attempt);

  mutable std::mutex mutex_;  // protects the members below
  std::filesystem::path path_;
  std::string run_;
  std::unique_ptr<DirectoryLock> lock_;
  bool away_ = false;  // another job has the path; the folder is reached by its descriptor alone
};

// Finds the folder in which run `run` with output `path` writes: `path` or PATH.RUN; empty: neither belongs to that
// run. For the processes of a job that hold no OutputFolder. Throws Error if run.json cannot be read.
std::optional<io::Folder> find_folder_of_run(const std::filesystem::path& path, const std::string& run);

}  // namespace lockstep::checkpoint
