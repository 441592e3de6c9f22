// A command line that is wrong, found on all ranks together: a program that is started again with it fails again, so
// Program ends with status 2 and `lockstep run` does not try.
#pragma once

#include <utility>

#include "lockstep/comm/agreement.h"

namespace lockstep::train {

class CommandLineError : public comm::AgreedError {
 public:
  using comm::AgreedError::AgreedError;
};

// As comm::collectively(), for what looks at options: throws CommandLineError on all ranks if it fails on any.
template <class Work>
void check_together(const comm::Communicator& comm, Work&& work) {
  try {
    comm::collectively(comm, std::forward<Work>(work));
  } catch (const comm::AgreedError& error) {
    throw CommandLineError(error.what());
  }
}

}  // namespace lockstep::train
