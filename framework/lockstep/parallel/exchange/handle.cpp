#include "lockstep/parallel/exchange/handle.h"

#include <utility>

#include "lockstep/core/backoff.h"
#include "lockstep/core/log.h"

namespace lockstep::parallel {

void drive(Reduction& reduction) {
  for (Backoff pause; !reduction.complete();) {
    if (reduction.advance()) {
      pause = {};
    } else {
      pause.pause();
    }
  }
}

Handle& Handle::operator=(Handle&& other) noexcept {
  if (this != &other) {
    finish();
    reduction_ = std::move(other.reduction_);
  }
  return *this;
}

bool Handle::test() {
  if (!active()) return true;
  const std::shared_ptr<Reduction> reduction = std::move(reduction_);  // released if one of the calls throws
  reduction_ = nullptr;
  if (!reduction->complete()) reduction->advance();
  if (!reduction->complete()) reduction_ = reduction;
  return !active();
}

void Handle::wait() {
  if (const std::shared_ptr<Reduction> reduction = std::exchange(reduction_, nullptr)) drive(*reduction);
}

void Handle::finish() noexcept {
  if (!active()) return;
  if (std::uncaught_exceptions() > exceptions_) return std::exchange(reduction_, nullptr)->give_up();
  try {
    wait();
  } catch (const std::exception& error) {
    log()->error("[allreduce] a handle was destroyed before its reduction was complete, which then failed: {}",
                 error.what());
  }
}

}  // namespace lockstep::parallel
