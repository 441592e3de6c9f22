// Resumes from a checkpoint: finds it, and restores weights, optimizer, position and record. Collective; all ranks
// throw if the checkpoint cannot be used.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lockstep/checkpoint/file.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/report/run_record.h"
#include "lockstep/train/run/continuation.h"
#include "lockstep/train/run/course.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class Resumption {
 public:
  // All references must outlive this object.
  Resumption(const RunFacts& facts, RunFiles& files, Trainer& trainer, Course& course, RunRecord& record)
      : facts_(facts), files_(files), trainer_(trainer), course_(course), record_(record) {}

  // Resumes from the newest checkpoint of the run ("auto"), from a file, or from nothing (""), and determines the run's
  // id. Returns the step; empty: the run begins at step 0.
  std::optional<std::int64_t> resume(const std::string& from);
  // On rank 0, after a resume: the checkpoint that has all rows of sparse tables, with the number of the increment from
  // which the run resumed, or 0.
  const std::optional<checkpoint::Base>& base() const { return base_; }

 private:
  std::optional<checkpoint::StoredCheckpoint> file_to_resume(const std::string& from, std::string& path);
  void restore(const std::string& saved_metadata, const io::TensorSource& of_root, const std::string& from,
               const std::string& path);
  void warn_of_differences(const Continuation& continued, const std::string& from, const std::string& path) const;
  nlohmann::json metadata_now() const;

  const RunFacts& facts_;
  RunFiles& files_;
  Trainer& trainer_;
  Course& course_;
  RunRecord& record_;
  std::optional<checkpoint::Base> base_;
};

}  // namespace lockstep::train
