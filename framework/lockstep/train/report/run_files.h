// The files of a run in its output folder, except checkpoints: log, metrics, records and hashes; and the id of the run.
// Rank 0 has the folder; other ranks have only a log. One thread.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/checkpoint/output_folder.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/train/report/dllogger.h"
#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/log.h"
#include "lockstep/train/report/metrics.h"
#include "lockstep/train/report/record_files.h"

namespace lockstep::train {

class RunFiles {
 public:
  struct Settings {
    std::string output;  // the run's folder
    bool quiet = false;
    std::int64_t hash_every = 0;  // updates between lines of hashes; 0: never
    LogLevel log_level = LogLevel::Info;
    bool log_per_host = false;  // see LogOptions::folder_per_host
    RecordKinds records = {};   // the files of --logger
    bool log_alone = false;     // the job writes a log and no other file of a run: it needs no lock
  };
  // Creates and, unless `log_alone`, locks the folder, and opens the log. Collective; throws on all ranks.
  RunFiles(const comm::Communicator& comm, Settings settings);

  Log& log() { return *log_; }
  checkpoint::OutputFolder& folder() { return *folder_; }  // on rank 0, unless `log_alone`
  const std::string& output() const { return settings_.output; }
  const std::string& run() const { return run_; }  // the run's id, equal on all ranks; empty: not known yet
  void set_run(std::string run) { run_ = std::move(run); }
  // Names the metrics of the model, which a table has as columns; before check() and open(), on rank 0.
  void set_metrics(std::vector<MetricRule> rules) { rules_ = std::move(rules); }

  // On rank 0: throws Error if files of an earlier run cannot be written, or, where the run `continues` them, do not
  // fit this one; changes nothing. After set_metrics().
  void check(bool continues) const;
  // On rank 0: opens metrics, records and hashes in `folder`, for a run that resumes after `resumed_step`, or a new run
  // without it.
  void open(const std::shared_ptr<const io::Folder>& folder, std::optional<std::int64_t> resumed_step);
  MetricsWriter* metrics() { return metrics_.get(); }  // null before open() and on other ranks
  DlloggerWriter* dllogger() { return dllogger_ && dllogger_->enabled() ? dllogger_.get() : nullptr; }
  HashLog* hashes() { return hashes_.get(); }
  TensorboardWriter* tensorboard() {
    return records_ && records_->tensorboard().enabled() ? &records_->tensorboard() : nullptr;
  }
  // Writes a record to metrics.jsonl, and to the files of --logger if it is new there; nothing on other ranks.
  void write(const MetricsRecord& record) {
    if (metrics_ && metrics_->write(record)) records_->write(record);
  }

  // Opens files anew that a user has removed or replaced. Not collective; a failure is a warning, once.
  void keep();
  // Registers `moved`, which is called with the log's path after keep() has opened it anew.
  void when_log_moves(std::function<void(const std::filesystem::path&)> moved) { log_moved_ = std::move(moved); }

 private:
  void keep_or_throw(std::string& problem);

  Settings settings_;
  std::unique_ptr<checkpoint::OutputFolder> folder_;  // on rank 0, unless `log_alone`
  std::string run_;
  std::unique_ptr<Log> log_;
  std::unique_ptr<MetricsWriter> metrics_;
  std::unique_ptr<DlloggerWriter> dllogger_;
  std::unique_ptr<HashLog> hashes_;
  std::unique_ptr<RecordFiles> records_;
  std::vector<MetricRule> rules_;
  std::function<void(const std::filesystem::path&)> log_moved_;
  std::string problem_;  // the last warning of keep()
};

}  // namespace lockstep::train
