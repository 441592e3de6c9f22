// The course of a run: which samples come next, where in the epochs that is, at which rate they are trained, and when
// the run is done. Owns the loaders of this rank. One thread.
#pragma once

#include <optional>

#include "lockstep/data/loader.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class Course {
 public:
  // `facts` outlive this. Throws Error.
  Course(const RunFacts& facts, const Trainer& trainer);

  data::Loader& training() { return training_; }
  data::Loader& evaluation() { return evaluation_; }
  std::size_t bytes() const { return training_.bytes() + evaluation_.bytes(); }

  data::SamplerPosition position() const { return training_.position(); }
  std::int64_t steps_per_epoch() const { return training_.sampler().steps_per_epoch(); }
  double epochs_done() const;                               // a fraction within an epoch
  std::int64_t total_steps() const;                         // at which the run ends
  double schedule_epochs() const;                           // at which the learning-rate schedule ends
  bool is_done(std::int64_t updates) const;                 // `updates` have been made
  double rate() const { return schedule_(epochs_done()); }  // for the next batch
  // Throws Error unless the last, smaller batch of an epoch can be trained, if the run comes to one.
  void check_last_batch(const Trainer& trainer) const;

 private:
  const RunFacts& facts_;
  data::Loader training_, evaluation_;
  optim::Schedule schedule_;
};

}  // namespace lockstep::train
