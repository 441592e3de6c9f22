// The signals that the supervisor answers, to be read one by one instead of interrupting it: TERM, INT, HUP (unless it
// was ignored, as under nohup), USR1 and USR2. A closed stderr does not end it either, and
// children are reaped by it even if its parent ignored SIGCHLD. One per process; its end restores the signal handling
// from before.
#pragma once

#include <csignal>
#include <optional>

namespace lockstep::supervisor {

class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }  // readable when one has come, or when a child has ended
  std::optional<int> next();                      // children apart; does not wait

 private:
  sigset_t previous_{};
  struct sigaction pipe_ {
  }, child_{};
  int descriptor_ = -1;
};

}  // namespace lockstep::supervisor
