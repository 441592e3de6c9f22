// The course of a run whose samples come from producers: this rank's stream, the position in epochs of a number of
// steps, and the end, when the streams of all ranks have ended. One thread. A rank whose stream has ended, or whose
// producer failed, takes part in steps without samples; the step's control block tells all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "lockstep/data/sampler.h"
#include "lockstep/data/stream.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/run/stream_state.h"

namespace lockstep::train {

class StreamCourse {
 public:
  explicit StreamCourse(const RunFacts& facts);  // `facts` must outlive this object

  // Starts the producers: at the beginning of their streams, or where the progress of a checkpoint says, with the
  // reservoirs that it contains; `of_root` are the checkpoint's tensors on rank 0. Collective; throws AgreedError.
  void open();
  void reopen(const StreamProgress& saved, data::SamplerPosition position, const io::TensorSource& of_root,
              const std::string& file);

  // The present epoch, and the number of steps of it as the offset.
  data::SamplerPosition position() const { return position_; }
  bool ended() const { return ended_; }  // the streams of all ranks have ended
  bool ended_within_epoch() const { return ended_within_epoch_; }

  // Returns the next batch, which may have no samples. Waits for the producer.
  data::Batch next();
  void recycle(data::Batch batch) { loader_->recycle(std::move(batch)); }
  std::uint64_t requests() const;  // bits for Trainer::listen()
  // Takes note of the step with the last batch, which had `samples` samples over all ranks. Returns false if it had
  // none: the streams have ended. Throws AgreedError on all ranks if the producer of a rank failed.
  bool take_step(std::int64_t samples, std::uint64_t requests);

  // Brings the progress of all ranks to this rank, for a checkpoint; collective.
  void gather_progress();
  const StreamProgress& progress() const { return progress_; }  // at the last gather_progress()
  // Sends the samples of the reservoirs to rank 0 (spool_reservoirs()), after gather_progress(); collective. Empty
  // without reservoir.
  Spooled spool(Heartbeat& heartbeat, const io::Folder* folder) const;

  std::size_t bytes() const;  // the largest number of bytes that batches and reservoir take

 private:
  void start_producer();
  std::int64_t batch() const;

  const RunFacts& facts_;
  StreamProgress progress_;
  data::SamplerPosition position_, before_;  // before_: before the last batch
  std::int64_t began_at_ = 0;                // samples that this rank's producer had sent in earlier starts
  bool ended_ = false, ended_within_epoch_ = false;
  std::exception_ptr error_;  // of this rank's producer
  std::shared_ptr<data::Reservoir> reservoir_;
  std::unique_ptr<data::StreamLoader> loader_;
};

}  // namespace lockstep::train
