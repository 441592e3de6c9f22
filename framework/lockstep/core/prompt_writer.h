// Writes to a descriptor without waiting for its reader, and without making it non-blocking for the processes that
// share it. A closed pipe is an error of the write alone: this thread gets no SIGPIPE. One thread.
#pragma once

#include <string_view>

namespace lockstep {

class PromptWriter {
 public:
  // `file` stays the caller's and stays open.
  explicit PromptWriter(int file);
  ~PromptWriter();
  PromptWriter(const PromptWriter&) = delete;
  PromptWriter& operator=(const PromptWriter&) = delete;

  // Removes from `text` what the stream takes now, which may be nothing; false if the stream is gone.
  bool write(std::string_view& text) const;

 private:
  int file_;
  int own_;  // the same stream, opened again with its own mode; -1: impossible
};

}  // namespace lockstep
