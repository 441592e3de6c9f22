// How errors of the library become the codes of lockstep_c.h: nothing that is thrown passes guarded(). A code belongs
// to the error's class where it has one (memory, peer, not finite), else to the call (argument, file, other). Any
// thread; the message is the thread's own.
#pragma once

#include <lockstep_c.h>

#include <string>
#include <utility>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"

namespace lockstep::bindings {

// An error with a code of its own.
class CodedError : public Error {
 public:
  CodedError(int code, const std::string& text) : Error(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

// The same, which all ranks throw together: what they compute with is as before.
class AgreedCodedError : public CodedError {
 public:
  using CodedError::CodedError;
};

// The result of a part of a call. A code of LOCKSTEP_OK has no text.
struct Failure {
  int code = LOCKSTEP_OK;
  std::string text{};
};

// Returns the failure that the exception under way is; errors without a code of their own have `code`.
Failure current_failure(int code);

// Keeps the message of the exception under way for lockstep_last_error(), and returns its code. Throws nothing.
int record_current_failure(int code) noexcept;
const char* last_message() noexcept;

// Runs `work` and returns LOCKSTEP_OK, or the code of what it throws.
template <class Work>
int guarded(int code, Work&& work) noexcept {
  try {
    std::forward<Work>(work)();
    return LOCKSTEP_OK;
  } catch (...) {
    return record_current_failure(code);
  }
}

// Returns if no rank has a failure; otherwise all ranks throw the AgreedCodedError of the lowest rank that has one.
// Collective.
void agree(const comm::Communicator& comm, const Failure& mine);

// Throws on all ranks (LOCKSTEP_ERROR_ARGUMENT) unless `value` is the same on all of them. Collective.
void require_same(const comm::Communicator& comm, const std::string& name, const std::string& value);

// Runs `work`, which does not communicate, on every rank; throws on all ranks if it throws on any. Collective.
template <class Work>
void together(const comm::Communicator& comm, int code, Work&& work) {
  Failure mine;
  try {
    std::forward<Work>(work)();
  } catch (...) {
    mine = current_failure(code);
  }
  agree(comm, mine);
}

}  // namespace lockstep::bindings
