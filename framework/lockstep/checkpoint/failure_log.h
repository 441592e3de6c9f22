// Logs which checkpoint drafts could not be written: the first failure in full, further failures in a row in fewer
// words with their number, and repeated tries of one draft at growing intervals. One thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace lockstep::checkpoint {

class FailureLog {
 public:
  void begin() { tries_ = 0; }  // a new draft begins
  // Notes that a try of this draft failed and that the next one is after `retry`. `quiet`: the caller reports it.
  void failed(std::int64_t step, const std::string& reason, std::chrono::milliseconds retry, bool quiet);
  // Notes that the draft was written; logs that if earlier ones failed.
  void succeeded(std::int64_t step);

 private:
  std::int64_t failed_ = 0;  // number of drafts in a row that failed; a draft counts from its first failed try
  std::int64_t tries_ = 0;   // failed tries of this draft
};

}  // namespace lockstep::checkpoint
