// The part of Session that goes back to the newest checkpoint while it runs.
#include "lockstep/comm/agreement.h"
#include "lockstep/train/run/session.h"

namespace lockstep::train {

// As a new start with --resume auto would, but for what a program has already: batches of the epoch at hand follow on
// from the checkpoint's position. False: there is no checkpoint yet.
bool Session::roll_back() {
  if (saved_step_ < 0) return false;
  heartbeat_.enter(Heartbeat::Phase::Saving);
  if (!comm_.is_root()) heartbeat_.wait();
  progress_->pause();
  if (writer_) writer_->claim();  // the newest checkpoint may be on its way
  const std::string asked = std::exchange(options_.resume, "auto");
  const std::optional<std::int64_t> begun = std::exchange(resumed_step_, std::nullopt);
  resume();
  options_.resume = asked;
  const std::optional<std::int64_t> step = std::exchange(resumed_step_, begun);
  if (!step) return false;
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    const auto output = output_->folder();
    metrics_ = std::make_unique<MetricsWriter>(output, step);
    hashes_ = std::make_unique<HashLog>(output, options_.hash_every, step);
  });
  epoch_samples_ = 0;
  epoch_began_ = seconds();
  save_after_evaluation_ = false;
  return true;
}

}  // namespace lockstep::train
