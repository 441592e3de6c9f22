// What a reader says of a broken input.
#pragma once

#include <string>

#include "lockstep/core/error.h"

namespace lockstep::launch {

// The message of the Error that `read` throws; empty: none.
template <class Read>
std::string error_of(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::launch
