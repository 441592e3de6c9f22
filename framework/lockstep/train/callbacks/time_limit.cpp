#include "lockstep/train/callbacks/time_limit.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/core/log.h"
#include "lockstep/train/monitor/requests.h"
#include "lockstep/train/report/progress.h"

namespace lockstep::train {

TimeLimit::TimeLimit(const DeadlineOptions& options) : deadline_(options) {
  if (!deadline_.exists()) return;
  const double left = deadline_.remaining(Deadline::Clock::now());
  if (left > 0) {
    log()->info("time: {} to {}; the run stops with a checkpoint {:.0f} s or more before", duration_text(left),
                deadline_.source(), deadline_.margin());
  } else {
    log()->info("time: {} is over; the run stops with a checkpoint after one step", deadline_.source());
  }
}

std::uint64_t TimeLimit::requests() {
  const bool time_is_up = deadline_.reached(Deadline::Clock::now()) && !waits_;
  return time_is_up ? std::uint64_t{kTimeIsUp} : 0;
}

void TimeLimit::after_evaluation(const EvaluationEvent& event, Orders& orders) {
  waits_ = false;
  if (event.scheduled) answer(event.requests, orders);
}

void TimeLimit::after_checkpoint(const CheckpointEvent& event) {
  if (event.write_seconds > 0) deadline_.checkpoint_took(event.write_seconds);
}

void TimeLimit::answer(std::uint64_t asked, Orders& orders) const {
  if ((asked & kTimeIsUp) == 0) return;
  std::string limit = "the time limit";  // rank 0 alone knows the details
  if (deadline_.exists()) {
    const double left = deadline_.remaining(Deadline::Clock::now());
    limit = deadline_.source() + (left > 0 ? fmt::format(" is {:.0f} s away", std::ceil(left)) : " is over");
  }
  orders.stop(std::move(limit));
}

}  // namespace lockstep::train
