// What the tests of the launcher share.
#pragma once

#include <functional>
#include <string>

#include "lockstep/core/error.h"
#include "tools/launcher/secret.h"

namespace lockstep::launcher {

inline const Secret& secret() {
  static const Secret value("0123456789abcdef", "test");
  return value;
}

// The message of the Error that `work` throws; empty: none.
inline std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace lockstep::launcher
