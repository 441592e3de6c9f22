// The course of a run: its next samples, its position in the epochs, its learning rate, and its end. Owns the loaders
// of this rank. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "lockstep/data/loader.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/run/stream_course.h"
#include "lockstep/train/step/trainer.h"

namespace lockstep::train {

class Course {
 public:
  // `facts` must outlive this object. Throws Error for loaders or a schedule that cannot be made.
  Course(const RunFacts& facts, const Trainer& trainer);

  // The next batch of the training set or the stream, and its memory back. A batch of a stream may have no samples.
  data::Batch next() { return stream_ ? stream_->next() : training_->next(); }
  void recycle(data::Batch batch);
  // The batch of the training set that next() will return; null: it is a stream's, or cannot be read.
  const data::Batch* peek() { return stream_ ? nullptr : training_->peek(); }
  // Of streams, see StreamCourse; without one they do nothing.
  std::uint64_t requests() const { return stream_ ? stream_->requests() : 0; }
  bool take_step(std::int64_t samples, std::uint64_t requests) {
    return !stream_ || stream_->take_step(samples, requests);
  }
  bool ended_within_epoch() const { return stream_ && stream_->ended_within_epoch(); }
  void gather_progress() {
    if (stream_) stream_->gather_progress();
  }
  // Of a run with a training set; of a run with a stream, stream() is not null in its place.
  data::Loader& training() { return *training_; }
  StreamCourse* stream() { return stream_.get(); }
  const StreamCourse* stream() const { return stream_.get(); }
  // Returns whether the run has evaluation data, and how many samples of all evaluation sets.
  bool has_evaluation() const { return evaluation_ != nullptr; }
  std::int64_t evaluation_samples() const;
  // Returns the loader of the evaluation set; it must be there. And those of further sets, by name.
  data::Loader& evaluation() { return *evaluation_; }
  std::map<std::string, std::unique_ptr<data::Loader>>& more_evaluations() { return more_evaluations_; }
  std::size_t bytes() const;

  // The position in the training set in samples; in a stream, the offset counts steps.
  data::SamplerPosition position() const { return stream_ ? stream_->position() : training_->position(); }
  std::int64_t steps_per_epoch() const;
  std::int64_t step_in_epoch() const;        // steps of the present epoch that are done
  std::int64_t epoch_size() const;           // the offset at which an epoch ends
  double epochs_done() const;                // with a fraction inside an epoch
  std::int64_t total_steps() const;          // number of updates at which the run ends
  double schedule_epochs() const;            // number of epochs at which the rate's schedule ends
  bool is_done(std::int64_t updates) const;  // the run ends after `updates` updates
  void end() { ended_ = true; }              // the run ends here, whatever its options say
  double rate() const { return rate_factor_ * schedule_(epochs_done()); }  // learning rate for the next batch
  void set_rate_factor(double factor) { rate_factor_ = factor; }           // 1 at first
  // Throws Error if the run reaches the last, smaller batch of an epoch and that batch cannot be trained.
  void check_last_batch(const Trainer& trainer) const;

 private:
  const RunFacts& facts_;
  std::unique_ptr<data::Loader> training_;
  std::unique_ptr<StreamCourse> stream_;
  std::unique_ptr<data::Loader> evaluation_;
  std::map<std::string, std::unique_ptr<data::Loader>> more_evaluations_;
  optim::Schedule schedule_;
  double rate_factor_ = 1;  // of a schedule that depends on evaluations
  bool ended_ = false;
};

}  // namespace lockstep::train
