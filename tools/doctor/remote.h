// A command on a host, with its three streams. Ended when it goes out of scope, by SIGTERM, at which mpirun ends its
// ranks, and SIGKILL some seconds later.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::tools {

class Remote {
 public:
  // Throws Error where it cannot be started at all; a program that is not there ends with status 127.
  explicit Remote(const std::vector<std::string>& words);
  Remote(Remote&&) noexcept;
  Remote& operator=(Remote&&) = delete;
  ~Remote();

  // Waits until one of them has said something, or `milliseconds` have passed.
  static void wait(const std::vector<Remote*>& all, int milliseconds);
  // The next whole line of its stdout, if there is one.
  std::optional<std::string> line();
  // The bytes that its stdin does not take within a limit of time is left out: it has ended, or will not answer in
  // time.
  void write_line(const std::string& text);
  bool ended();  // its stdout is closed: nothing more will come
  int status();  // as a shell gives it; waits
  const std::string& errors() const { return errors_; }

 private:
  void read();

  pid_t pid_ = -1;
  io::FileDescriptor in_{}, out_{}, err_{};
  std::string output_{}, errors_{};
  bool closed_ = false;
  std::optional<int> status_{};
};

}  // namespace lockstep::tools
