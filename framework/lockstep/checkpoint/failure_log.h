// Says in the log which drafts of checkpoints could not be written: the first in full, those that follow in a row in
// fewer words with their number, and further tries of one draft ever more rarely. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::checkpoint {

class FailureLog {
 public:
  void begin() { tries_ = 0; }  // with another draft
  // A try of this draft failed; the next one is after `retry`. `quiet`: the caller tells.
  void failed(std::int64_t step, const std::string& reason, std::chrono::milliseconds retry, bool quiet);
  void succeeded(std::int64_t step);

 private:
  std::int64_t failed_ = 0;  // drafts in a row that could not be written, counted from the first try of each
  std::int64_t tries_ = 0;   // of this draft
};

}  // namespace lockstep::checkpoint
