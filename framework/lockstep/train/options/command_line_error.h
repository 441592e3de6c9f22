// A wrong command line, found on all ranks together: another start with it would fail again, so Program ends with
// status 2 and `lockstep run` makes no other start.
#pragma once

#include <utility>

#include "lockstep/comm/agreement.h"

namespace lockstep::train {

class CommandLineError : public comm::AgreedError {
 public:
  using comm::AgreedError::AgreedError;
};

// As comm::collectively(), for checks of options: throws CommandLineError on all ranks if it fails on any.
template <class Work>
void check_together(const comm::Communicator& comm, Work&& work) {
  try {
    comm::collectively(comm, std::forward<Work>(work));
  } catch (const comm::AgreedError& error) {
    throw CommandLineError(error.what());
  }
}

}  // namespace lockstep::train
