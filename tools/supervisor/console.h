// The output of a supervisor and its job on the supervisor's stdout and stderr, which may be read slowly or not at
// all: no text waits for a reader longer than some seconds, and unread text goes into the supervisor's log instead. One
// thread.
#pragma once

#include <spdlog/logger.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/core/stream_writer.h"

namespace lockstep::supervisor {

class Console {
 public:
  // `log` is a file, which is appended to.
  explicit Console(const std::filesystem::path& log);
  ~Console();

  // From now on the log is this file: the one before was removed.
  void move_log(const std::filesystem::path& log);

  // Lines on stderr, after "lockstep run: ", and in the log.
  const std::shared_ptr<spdlog::logger>& log() const { return log_; }

  enum class Stream { Output, Errors };
  // Whether more of the job's text is wanted. While a reader is merely slow it is not, so that the job waits for it,
  // and no text is lost that is passed only when it is wanted; after ten seconds in which the reader reads nothing, the
  // text goes elsewhere.
  bool takes(Stream stream) const;
  void pass(Stream stream, std::string_view text);

 private:
  StreamWriter& writer(Stream stream) { return stream == Stream::Output ? out_ : err_; }

  StreamWriter out_, err_;
  std::shared_ptr<spdlog::logger> log_, file_;  // `log_` writes to both, `file_` to the file alone
};

}  // namespace lockstep::supervisor
