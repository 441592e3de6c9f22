// What a run writes into its folder beside checkpoints: log, metrics and hashes; and which run this is. Rank 0 holds
// the folder, the other ranks a log alone. One thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "lockstep/checkpoint/output_folder.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/log.h"
#include "lockstep/train/report/metrics.h"

namespace lockstep::train {

class RunFiles {
 public:
  struct Settings {
    std::string output;  // the run's folder
    bool quiet = false;
    std::int64_t hash_every = 0;  // updates; 0: never
  };
  // Makes and locks the folder, and opens the log. Collective; throws on all ranks.
  RunFiles(const comm::Communicator& comm, Settings settings);

  Log& log() { return *log_; }
  checkpoint::OutputFolder& folder() { return *folder_; }  // on rank 0
  const std::string& output() const { return settings_.output; }
  const std::string& run() const { return run_; }  // the run's id, the same on all ranks; empty: not settled yet
  void set_run(std::string run) { run_ = std::move(run); }

  // On rank 0: throws Error if files of an earlier run cannot be gone on with; changes nothing.
  void check() const;
  // On rank 0: metrics and hashes of a run that goes on after `resumed_step`, or begins without it. `folder` is where.
  void open(const std::shared_ptr<const io::Folder>& folder, std::optional<std::int64_t> resumed_step);
  MetricsWriter* metrics() { return metrics_.get(); }  // null before open() and on other ranks
  HashLog* hashes() { return hashes_.get(); }

  // Opens files anew that somebody has removed or replaced. Of this rank alone; what fails is a warning, once.
  void keep();
  // `moved` is called with the log's path after keep() has opened it anew.
  void when_log_moves(std::function<void(const std::filesystem::path&)> moved) { log_moved_ = std::move(moved); }

 private:
  void keep_or_throw(std::string& problem);

  Settings settings_;
  std::unique_ptr<checkpoint::OutputFolder> folder_;  // on rank 0
  std::string run_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<HashLog> hashes_;
  std::function<void(const std::filesystem::path&)> log_moved_;
  std::string problem_;  // as it was said last
};

}  // namespace lockstep::train
