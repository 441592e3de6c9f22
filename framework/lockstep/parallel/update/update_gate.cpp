#include "lockstep/parallel/update/update_gate.h"

namespace lockstep::parallel {

void UpdateGate::pass(int bucket) {
  const auto number = static_cast<std::size_t>(bucket);
  if (update_.state().posted || update_.buckets().is_done(number)) return;
  heartbeat_.touch_bucket(bucket);
  const auto since = StepTimer::Clock::now();
  wait_until([&] { return update_.buckets().is_done(number); });
  timer_.add_wait_for_bucket(bucket, since);
}

void UpdateGate::pass_all() {
  for (std::size_t b = 0; b < update_.buckets().buckets(); ++b) pass(static_cast<int>(b));
}

}  // namespace lockstep::parallel
