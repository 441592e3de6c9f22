#include "lockstep/train/step/step_votes.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::train {

void StepVotes::listen(Requests mine, std::uint64_t ends_evaluation) {
  check(mine != nullptr, "trainer", "listen() got an empty function, expected one that returns requests");
  requests_ = std::move(mine);
  ends_evaluation_ = ends_evaluation;
}

void StepVotes::vote(Vote mine) {
  check(mine != nullptr, "trainer", "vote() got an empty function, expected one that returns votes");
  vote_ = std::move(mine);
}

std::uint64_t StepVotes::ask_for_step() {
  std::ranges::fill(sums_, 0.0);
  const std::uint64_t requests = requests_();
  return requests | vote_(sums_);
}

}  // namespace lockstep::train
