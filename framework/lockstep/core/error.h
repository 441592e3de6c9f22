// Errors that name site, value and expectation: `[conv2d] layer1.0.conv1: input has 32 channels, weight expects 64`.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <typeinfo>

#include "lockstep/core/format.h"

namespace lockstep {

// The exception for every error that a caller can cause. what() is one line, complete without a stack.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Another rank has failed; that rank reports the cause.
class PeerError : public Error {
 public:
  using Error::Error;
};

// The system did not give memory, or a file that is there: it may do so later, or to another process. The bytes of such
// a file may be whole, so code that takes another file in the place of a damaged one lets this error pass.
class Unavailable : public Error {
 public:
  using Error::Error;
};

// A row of a batch is wrong. row() counts from 0 in the computed batch; a caller that knows the sample calls
// of() for an Error that names the sample.
class SampleError : public Error {
 public:
  // The message is `before`, the row's name, `after`: "[cross_entropy] fc: 'label' of ", 2, " is 10, expected 0 to 9".
  SampleError(const std::string& before, std::int64_t row, const std::string& after)
      : Error(formatted("{}row {} of the batch{}", before, row, after)), before_(before), after_(after), row_(row) {}
  std::int64_t row() const { return row_; }
  Error of(std::string_view sample) const { return Error(formatted("{}{}{}", before_, sample, after_)); }

 private:
  std::string before_, after_;
  std::int64_t row_;
};

// Whether an error's class carries more than its message, such as the rank that failed or that all ranks throw it
// together: code that catches an Error to add to its message lets such errors pass unchanged (`throw;`). Unavailable
// counts as an Error without one: whoever adds to its message has no other file to take.
inline bool has_own_class(const Error& error) {
  return typeid(error) != typeid(Error) && typeid(error) != typeid(Unavailable);
}

// Throws Error("[site] message").
[[noreturn]] void fail_with(std::string_view site, std::string_view message);

// Throws Error("[site] message") with a formatted message.
template <class... Args>
[[noreturn, gnu::cold]] void fail(std::string_view site, FormatFor<std::type_identity_t<Args>...> format,
                                  const Args&... args) {
  fail_with(site, format_arguments(format.text(), {args...}));
}

// Throws as fail() does if `condition` is false; the message is formatted only then.
template <class... Args>
void check(bool condition, std::string_view site, FormatFor<std::type_identity_t<Args>...> format,
           const Args&... args) {
  if (!condition) [[unlikely]]
    fail(site, format, args...);
}

// Throws Error("[site] message: reason of errno") if `succeeded`, which says how a system call ended, is false. Without
// this function a caller's std::strerror(errno) may be evaluated before the call, as C++ leaves the order of arguments
// open.
template <class... Args>
void check_call(bool succeeded, std::string_view site, FormatFor<std::type_identity_t<Args>...> format,
                const Args&... args) {
  if (succeeded) [[likely]]
    return;
  const int cause = errno;
  fail_with(site, formatted("{}: {}", format_arguments(format.text(), {args...}), std::strerror(cause)));
}

}  // namespace lockstep
