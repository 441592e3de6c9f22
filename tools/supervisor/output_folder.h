// The folder of a supervised job, as its supervisor sees it: one supervisor at a time, whose run it holds, the newest
// checkpoint, the job that uses the folder, and the files that change when a job has begun. Throws Error where the
// folder cannot be written or another supervisor holds it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "lockstep/checkpoint/directory_lock.h"

namespace lockstep::supervisor {

class OutputFolder {
 public:
  // Makes FOLDER/logs and locks it, as long as this lives.
  explicit OutputFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path log() const { return path_ / "logs" / "supervisor.log"; }
  std::filesystem::path hostfile() const { return path_ / "logs" / "supervisor.hosts"; }
  // Makes and locks it again where it was removed or replaced meanwhile; returns whether it was.
  bool keep();
  // The reason why another supervisor would stay unnoticed; empty: it would be noticed.
  const std::string& warning() const { return lock_.warning(); }

  // Notes which run the job is, by the folder's run.json, as long as the folder is the one that was locked; whether
  // that is news. To be called before a start and while the job runs: it may begin another run as it starts.
  bool note_run();
  const std::string& run() const { return run_; }  // empty: not known
  // Why another start would not go on with that run: another run's folder has come here meanwhile, or the folder was
  // moved. Empty: it would.
  std::string estrangement() const;

  struct Newest {
    std::int64_t step = -1;  // none
    std::filesystem::path path{};
    std::filesystem::file_time_type written{};
    bool operator==(const Newest&) const = default;
  };
  // Of another run none counts. Throws Error while the file system does not answer.
  Newest newest() const;

  // The job that holds the lock of a training program (FOLDER/.lock) now, as it describes itself; empty: none.
  std::string holder() const;

  // Files in the folder and its subfolders with the times and sizes that writing changes, except the supervisor's.
  struct Stamp {
    std::filesystem::file_time_type written{};
    std::uintmax_t bytes = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Stamps = std::map<std::filesystem::path, Stamp>;
  static Stamps stamps(const std::filesystem::path& folder);

 private:
  bool is_held() const;
  std::filesystem::path moved_to() const;

  std::filesystem::path path_;
  checkpoint::DirectoryLock lock_;
  std::string run_;
};

}  // namespace lockstep::supervisor
