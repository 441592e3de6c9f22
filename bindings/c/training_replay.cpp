// Training on samples of the memory within a limit of time: Training::replay().
#include <array>
#include <cmath>
#include <span>

#include "bindings/c/collective_call.h"
#include "bindings/c/structs.h"
#include "bindings/c/training.h"

namespace lockstep::bindings {

void Training::replay(std::int64_t samples, std::int64_t steps, double seconds, double rate, lockstep_result* result) {
  const auto begin = Clock::now();
  require_usable();
  open_call(comm_, {Call::Replay, rate}, [&] {
    check_caller(result, kResult);
    check(memory_.capacity() > 0, "trainer", "the trainer has no memory of samples: set memory in its options");
    check(samples > 0 && steps >= 0 && seconds >= 0, "trainer",
          "{} samples, {} steps and {} seconds, expected at least 1, 0 and 0", samples, steps, seconds);
    check_rate(rate);
  });
  require_same(comm_, "samples, steps and seconds of a replay", formatted("{}, {}, {}", samples, steps, seconds));
  begin_steps();
  const auto all_here = Clock::now();  // what a rank has waited for others until now is no time of training
  lockstep_result sum = result_of({}, 0, begin);
  sum.stop = 0;
  double elapsed = 0;
  for (std::int64_t n = 0; n < steps && sum.stop == 0; ++n) {
    if (elapsed + step_seconds_ + 2 * step_deviation_ > seconds) break;
    const bool compiles = trainer_->updates() == 0;
    const ReplayedStep one = replay_step(samples, rate, begin, all_here);
    const double last = one.elapsed - elapsed;
    elapsed = one.elapsed;
    sum.stop = one.result.stop;
    if (one.result.steps == 0) break;  // no rank has a sample
    sum.samples += one.result.samples;
    sum.own_samples += one.result.own_samples;
    sum.steps += 1;
    sum.loss = one.result.loss;
    if (compiles) continue;
    if (step_seconds_ > 0) step_deviation_ = 0.75 * step_deviation_ + 0.25 * std::abs(last - step_seconds_);
    step_seconds_ = step_seconds_ > 0 ? 0.75 * step_seconds_ + 0.25 * last : last;
  }
  if (sum.steps == 0) {  // one slow step must not end the training for ever
    step_seconds_ *= 0.9;
    step_deviation_ *= 0.9;
  }
  if (sum.stop != 0) callback_.asked_to_stop = false;  // all ranks know it
  sum.seconds = seconds_since(begin);
  sum.updates = trainer_->updates();
  sum.skipped = trainer_->skipped();
  to_caller(sum, result, kResult);
}

// One step on drawn samples, with a call of the program's function. Time since `all_here` and stop are those of all
// ranks: the slowest rank's clock decides whether another step follows, and each rank's callback may end the replay.
Training::ReplayedStep Training::replay_step(std::int64_t samples, double rate, Clock::time_point begin,
                                             Clock::time_point all_here) {
  data::Batch mine;
  together(comm_, LOCKSTEP_ERROR_OTHER, [&] { mine = drawn(samples); });
  ReplayedStep one{.result = run_step(mine, rate, begin)};
  const Failure failure = call_back(one.result);
  std::array<double, 3> most{seconds_since(all_here), failure.code == LOCKSTEP_OK ? 0.0 : 1.0,
                             static_cast<double>(one.result.stop)};
  comm_.allreduce(comm::Buffer(std::span<double>(most)), comm::ReduceOp::Max);
  if (most[1] != 0) agree(comm_, failure);
  one.elapsed = most[0];
  one.result.stop = most[2] != 0 ? 1 : 0;
  return one;
}

}  // namespace lockstep::bindings
