// Errors that name place, value and expectation: `[conv2d] layer1.0.conv1: input has 32 channels, weight expects 64`.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

// What the library throws for everything a caller can cause. what() is one line, complete without a stack.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank has failed, and says itself what is wrong.
class PeerError : public Error {
 public:
  using Error::Error;
};

// Throws Error("[place] message").
[[noreturn]] void fail_with(std::string_view place, std::string_view message);

template <class... Args>
[[noreturn]] void fail(std::string_view place, fmt::format_string<Args...> format, Args&&... args) {
  fail_with(place, fmt::format(format, std::forward<Args>(args)...));
}

// Throws as fail() does unless `condition` holds; the message is formatted only then.
template <class... Args>
void check(bool condition, std::string_view place, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) [[unlikely]] {
    fail_with(place, fmt::format(format, std::forward<Args>(args)...));
  }
}

}  // namespace lockstep
