// Writes OUTPUT/facts.json for `lockstep report`, from the first epoch on: when the run began, its options, and, at the
// end with --profile, the time of each class of work. The last start of the run replaces the file. It is written on
// rank 0; a file that cannot be written is a warning.
#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/train/callbacks/callback.h"
#include "lockstep/train/report/profile.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class WriteFacts : public Callback {
 public:
  // All references must outlive this object; `options` are those of the run.
  WriteFacts(const Trainer& trainer, RunFiles& files, nlohmann::ordered_json options)
      : trainer_(trainer), files_(files), options_(std::move(options)) {}
  void begin_run(std::int64_t step) override;
  void begin_epoch(const EpochEvent& event) override;
  void end_run(const RunEnd& end) override;

 private:
  void write();

  const Trainer& trainer_;
  RunFiles& files_;
  nlohmann::ordered_json options_, facts_;  // no facts on ranks other than 0
  bool written_ = false;
};

// Returns steps, seconds, and the seconds of each class of work, the longest first; "other" is what no class has.
nlohmann::ordered_json profile_json(const Profile& profile);

}  // namespace lockstep::train
