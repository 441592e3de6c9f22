// A child made by fork(), that runs one function of bytes to a pipe and ends. For work that may crash: the caller goes
// on, and learns how the child ended.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::io {

struct ChildLimits {
  std::size_t memory = std::size_t{1} << 30;  // bytes beyond what the caller has mapped
  int seconds = 20;                           // of processor time
};

class ChildProcess {
 public:
  // `work` runs in the child, with the pipe to write to; only memory that nobody shares is written by it. Throws Error
  // where no child can be made.
  ChildProcess(const ChildLimits& limits, const std::function<void(int pipe)>& work);
  ~ChildProcess();  // ends it if need be
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Fills `out` from the pipe; false: it ended before.
  bool read(std::span<std::byte> out);
  // Waits, and says how it ended: "exit status 1", "signal 11 (Segmentation fault)".
  std::string wait();

 private:
  FileDescriptor pipe_;
  pid_t pid_ = -1;
};

// Writes all of it to a pipe or ends the calling process: for use in a child.
void write_or_exit(int pipe, std::span<const std::byte> bytes);

}  // namespace lockstep::io
