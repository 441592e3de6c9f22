#include "lockstep/train/callbacks/save_checkpoints.h"

#include "lockstep/train/monitor/requests.h"

namespace lockstep::train {

std::uint64_t SaveCheckpoints::requests() {
  const std::chrono::duration<double, std::ratio<60>> unsaved = Clock::now() - saved_at_;
  return every_.minutes > 0 && unsaved.count() >= every_.minutes ? std::uint64_t{kCheckpointDue} : 0;
}

void SaveCheckpoints::answer(std::uint64_t asked, Orders& orders) {
  if ((asked & kCheckpointDue) != 0) orders.checkpoint("the clock");
}

void SaveCheckpoints::after_step(const StepEvent& event, Orders& orders) {
  answer(event.requests, orders);
  if (every_.updates == 0 || event.step % every_.updates != 0) return;
  after_evaluation_ = record_.evaluation_due || event.epoch_ends;
  if (!after_evaluation_) orders.checkpoint();
}

void SaveCheckpoints::after_evaluation(const EvaluationEvent& event, Orders& orders) {
  if (event.scheduled) answer(event.requests, orders);
}

void SaveCheckpoints::end_epoch(const EpochEvent& event, Orders& orders) {
  const bool due = every_.epochs > 0 && event.whole && event.epoch % every_.epochs == 0;
  if (due || after_evaluation_) orders.checkpoint();
  after_evaluation_ = false;
}

}  // namespace lockstep::train
