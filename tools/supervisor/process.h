// A program started beside this one, in a session of its own so that a terminal's signals reach it through this process
// alone. Its stderr is read here unless it is this process's, its stdout is this process's unless it is caught too,
// alone or with stderr; its stdin is empty; it gets SIGTERM when this process dies. One thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::supervisor {

struct ProcessOptions {
  enum class Output { Ours, Apart, WithErrors };
  Output output = Output::Ours;                    // the destination of its stdout
  bool catch_errors = true;                        // false: its stderr is this process's
  std::map<std::string, std::string> variables{};  // added to the environment, in place of those of the same names
};

class Process {
 public:
  // Throws Error where it cannot be started at all; a program that is not there ends with status 127.
  explicit Process(const std::vector<std::string>& words, const ProcessOptions& options = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // ends it with SIGKILL and reaps it, if that is not done

  pid_t pid() const { return pid_; }
  int errors() const { return errors_.get(); }  // to be polled; -1: not caught
  int output() const { return output_.get(); }  // the same of a stdout that is apart, else -1
  void signal(int number) const;

  // Text that has come on stderr, or on a stdout that is apart: some 64 KiB at most, maybe empty. Does not wait.
  std::string read();
  std::string read_output();
  // The same when it has ended: all that the pipe holds, and no more of a process that outlives it and goes on writing.
  std::string read_rest();
  std::string read_rest_of_output();
  // Its wait status, once it has ended. Does not wait.
  std::optional<int> ended();

 private:
  pid_t pid_ = -1;
  io::FileDescriptor errors_, output_;
  std::optional<int> status_;
};

// "exit code 1", "signal 9 (Killed)".
std::string describe_status(int wait_status);
// The exit code as a shell gives it: the code, or 128 + signal.
int exit_code(int wait_status);

}  // namespace lockstep::supervisor
