// Writes text to a descriptor that may be read slowly or not at all (a pipe, a terminal after Ctrl-S) without holding
// up the caller for ever: a thread of the writer's own writes, and text waits in a queue of limited size. Text that
// finds no room is dropped and the caller is told. Where no thread can be started, the calls themselves write what the
// stream takes within the same limits. Any thread may call a StreamWriter.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

struct StreamWriterOptions {
  std::chrono::milliseconds patience{1000};  // longest wait of write() for its own text, and of the destructor
  std::size_t room = 65536;                  // text is taken while fewer bytes wait, however long it is
};

class StreamWriter {
 public:
  // `file` stays the caller's and stays open. A StreamWriter that has written nothing has no thread.
  explicit StreamWriter(int file, const StreamWriterOptions& options = {});
  // Waits for the queue for `patience`, not at all if the stream is stuck; what is not written then is lost.
  ~StreamWriter();
  StreamWriter(const StreamWriter&) = delete;
  StreamWriter& operator=(const StreamWriter&) = delete;

  enum class Result { Written, Queued, Dropped };
  // Queued: the stream did not take `text` within `patience`, or has not taken earlier text yet, in which case write()
  // does not wait. Dropped: has_room() was false. A stream that is gone (EPIPE, EIO) takes everything, to nowhere.
  Result write(std::string_view text);
  // Whether all text is written, after waiting for `limit` at most.
  bool flush(std::chrono::milliseconds limit);

  bool has_room() const;               // whether write() takes text now
  std::size_t pieces_waiting() const;  // that write() was given, and that are not whole at their destination
  std::string text_waiting() const;
  // Since when the stream has taken nothing though text waits; zero if none waits.
  std::chrono::milliseconds stuck_for() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with the thread, which may be left behind in a write() that never returns
};

// Writes `text` to `file` by a new StreamWriter: for the last words of a program.
void write_patiently(int file, std::string_view text);

}  // namespace lockstep
