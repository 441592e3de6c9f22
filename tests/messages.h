// The questions of tests about the messages of errors and logs.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {

// Calls `work` and returns the message of its Error; "no error" if it does not throw one.
template <class Work>
std::string error_of(Work&& work) {
  try {
    std::forward<Work>(work)();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace lockstep
