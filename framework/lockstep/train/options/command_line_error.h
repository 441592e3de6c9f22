// A wrong command line, thrown on all ranks together. Another start would fail again, so Program ends with status 2 and
// `lockstep run` does not restart it.
#pragma once

#include <utility>

#include "lockstep/comm/agreement.h"

namespace lockstep::train {

class CommandLineError : public comm::AgreedError {
 public:
  using comm::AgreedError::AgreedError;
};

// Runs `work`, a check of options, as comm::collectively() does; throws CommandLineError on all ranks if it throws on
// any.
template <class Work>
void check_together(const comm::Communicator& comm, Work&& work) {
  try {
    comm::collectively(comm, std::forward<Work>(work));
  } catch (const comm::AgreedError& error) {
    throw CommandLineError(error.what());
  }
}

}  // namespace lockstep::train
