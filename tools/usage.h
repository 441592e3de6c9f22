// A command line that cannot be used, found after it was parsed: `lockstep` ends with status 2, and nothing was done.
#pragma once

#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::tools {

class UsageError : public Error {
 public:
  using Error::Error;
};

// Runs a check of options; what it throws is an error of the command line.
template <class Work>
void check_usage(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    throw UsageError(error.what());
  }
}

}  // namespace lockstep::tools
