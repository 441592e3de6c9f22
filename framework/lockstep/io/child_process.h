// A child process, made by fork(), that runs one function, which writes bytes to a pipe, and ends. For work that may
// crash: the caller survives and learns how the child ended. One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::io {

struct ChildLimits {
  std::size_t memory = std::size_t{1} << 30;  // bytes of address space beyond those that the caller has mapped
  int seconds = 20;                           // processor time
};

class ChildProcess {
 public:
  // Runs `work` in the child, with the file descriptor of the pipe to write to. The child cannot write to memory that
  // processes share. Throws Error if the child cannot be made.
  ChildProcess(const ChildLimits& limits, const std::function<void(int pipe)>& work);
  ~ChildProcess();  // kills the child if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Fills `out` from the pipe; returns false if the pipe ends before `out` is full.
  bool read(std::span<std::byte> out);
  // Waits until the child ends and returns how: "exit status 1", "signal 11 (Segmentation fault)". A later call knows
  // nothing any more, and says so.
  std::string wait();

 private:
  FileDescriptor pipe_;
  pid_t pid_ = -1;
};

// Writes all bytes to a pipe, or ends the calling process if that fails: for use in a child.
void write_or_exit(int pipe, std::span<const std::byte> bytes);

}  // namespace lockstep::io
