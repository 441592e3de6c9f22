#include "lockstep/train/callbacks/answer_signals.h"

#include "lockstep/train/monitor/requests.h"

namespace lockstep::train {

std::uint64_t AnswerSignals::requests() { return requested(); }

void AnswerSignals::after_evaluation(const EvaluationEvent& event, Orders& orders) {
  if (event.scheduled) answer(event.requests, orders);
}

void AnswerSignals::answer(std::uint64_t asked, Orders& orders) {
  if ((asked & kStopAsked) != 0) orders.stop("a signal to stop");
  if ((asked & kCheckpointAsked) != 0) orders.checkpoint("a signal for a checkpoint");
}

}  // namespace lockstep::train
