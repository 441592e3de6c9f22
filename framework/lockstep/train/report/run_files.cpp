#include "lockstep/train/report/run_files.h"

#include <fmt/format.h>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep::train {

RunFiles::RunFiles(const comm::Communicator& comm, Settings settings) : settings_(std::move(settings)) {
  comm::collectively(comm, [&] {
    if (!comm.is_root() || settings_.log_alone) return;
    folder_ = std::make_unique<checkpoint::OutputFolder>(settings_.output);
    folder_->held()->make("checkpoints");
  });
  comm::collectively(comm, [&] {
    log_ = std::make_unique<Log>(LogOptions{.output = settings_.output,
                                            .rank = comm.rank(),
                                            .host = comm.host(),
                                            .quiet = settings_.quiet,
                                            .level = settings_.log_level,
                                            .folder_per_host = settings_.log_per_host,
                                            .folder = folder_ ? folder_->held() : nullptr});
  });
  if (folder_ && !folder_->warning().empty()) lockstep::log()->warn("{}", folder_->warning());
}

void RunFiles::check(bool continues) const {
  const auto folder = folder_->held();
  MetricsWriter::check_file(*folder);
  DlloggerWriter::check_file(*folder);
  HashLog::check_file(*folder);
  RecordFiles::check_files(*folder, settings_.records, rules_, continues);
}

void RunFiles::open(const std::shared_ptr<const io::Folder>& folder, std::optional<std::int64_t> resumed_step) {
  // In a rollback: lines that wait in memory go to the disk before the files are cut.
  metrics_.reset();
  dllogger_.reset();
  hashes_.reset();
  records_.reset();
  metrics_ = std::make_unique<MetricsWriter>(folder, resumed_step);
  dllogger_ = std::make_unique<DlloggerWriter>(folder, resumed_step, settings_.records.dllogger);
  hashes_ = std::make_unique<HashLog>(folder, settings_.hash_every, resumed_step);
  records_ = std::make_unique<RecordFiles>(folder, resumed_step, settings_.records);
  records_->begin(run_, rules_);
}

void RunFiles::keep() {
  std::string problem;
  try {
    keep_or_throw(problem);
  } catch (const Error& error) {
    problem = error.what();
  }
  if (!problem.empty() && problem != problem_)
    lockstep::log()->warn("{}; training goes on, next try at the next checkpoint or end of an epoch", problem);
  problem_ = problem;
}

void RunFiles::keep_or_throw(std::string& problem) {
  const bool moved = !log_->in_place();
  if (folder_) {
    const auto folder = folder_->folder();
    log_->follow(*folder);
    metrics_->follow(folder);
    dllogger_->follow(folder);
    hashes_->follow(folder);
    records_->follow(folder);
  } else if (!log_->in_place()) {
    const auto folder = checkpoint::find_folder_of_run(settings_.output, run_);
    if (folder) log_->follow(*folder);
    // If another job has taken the path, rank 0 follows the moved folder, and the open file is in it.
    if (!folder && !log_->exists())
      problem = fmt::format("[log] {} was removed, and {} does not belong to this run now", log_->file().string(),
                            settings_.output);
  }
  if (moved && log_moved_ && log_->in_place()) log_moved_(log_->file());
}

}  // namespace lockstep::train
