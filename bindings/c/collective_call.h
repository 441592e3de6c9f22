// How a call that all ranks make begins: one exchange tells whether they make the same call, with the same learning
// rate, and whether each can take part. Otherwise all ranks throw, and nothing has changed.
#pragma once

#include <cstdint>
#include <utility>

#include "bindings/c/failure.h"
#include "lockstep/comm/communicator.h"

namespace lockstep::bindings {

enum class Call : std::uint8_t { Step, Replay, Evaluate, Save, Resume };

struct Opening {
  Call call;
  double rate = 0;  // of a call that trains
};

// Throws a CodedError on all ranks: where the calls or the rates differ, or the failure of the lowest rank that has
// one. Collective.
void agree_on_call(const comm::Communicator& comm, const Opening& opening, const Failure& mine);

// Runs `check_arguments`, which does not communicate, and opens the call. Errors without a code of their own have
// LOCKSTEP_ERROR_ARGUMENT. Collective.
template <class Work>
void open_call(const comm::Communicator& comm, const Opening& opening, Work&& check_arguments) {
  Failure mine;
  try {
    std::forward<Work>(check_arguments)();
  } catch (...) {
    mine = current_failure(LOCKSTEP_ERROR_ARGUMENT);
  }
  agree_on_call(comm, opening, mine);
}

}  // namespace lockstep::bindings
