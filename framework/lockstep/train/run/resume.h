// Goes on from a checkpoint: finds it, and brings weights, optimizer, position and record to where they were.
// Collective; what can be wrong with a checkpoint is thrown on all ranks.
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
  // All outlive this.
  Resumption(const RunFacts& facts, RunFiles& files, Trainer& trainer, Course& course, RunRecord& record)
      : facts_(facts), files_(files), trainer_(trainer), course_(course), record_(record) {}

  // From the newest checkpoint of the run ("auto"), a file, or nothing (""). The step; empty: the run begins anew.
  // Settles the run's id.
  std::optional<std::int64_t> resume(const std::string& from);

 private:
  std::optional<checkpoint::StoredCheckpoint> file_to_resume(const std::string& from, std::string& place);
  void restore(const std::string& saved_metadata, const io::TensorSource& of_root, const std::string& from,
               const std::string& place);
  void warn_of_differences(const Continuation& continued, const std::string& from, const std::string& place) const;
  nlohmann::json metadata_now() const;

  const RunFacts& facts_;
  RunFiles& files_;
  Trainer& trainer_;
  Course& course_;
  RunRecord& record_;
};

}  // namespace lockstep::train
