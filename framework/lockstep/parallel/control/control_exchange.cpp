#include "lockstep/parallel/control/control_exchange.h"

namespace lockstep::parallel {
namespace {

constexpr int kTag = 0;

}  // namespace

bool ControlExchange::progress() {
  if (domains_.local_rank() != 0) return false;
  if (!exchanging_) {
    if (!flags_.all_reached(kPosted, step_)) return false;
    start();
  }
  if (!transport_.all_done(handles_)) return false;
  exchanging_ = false;
  flags_.raise(kComplete, step_++);
  return true;
}

void ControlExchange::start() {
  exchanging_ = true;
  const int mine = domains_.mine(), count = domains_.count();
  for (int i = 1; i < count; ++i) {
    const int domain = (mine + i) % count;
    handles_.push_back(transport_.receive(memory_.blocks_of(domain, step_), domains_.of(domain)[0], kTag));
  }
  for (int i = 1; i < count; ++i) {
    const int domain = (mine + i) % count;
    handles_.push_back(transport_.send(memory_.blocks_of(mine, step_), domains_.of(domain)[0], kTag));
  }
}

}  // namespace lockstep::parallel
