// Finds in what a job prints on stderr who failed first: mpirun's own reports (Open MPI 4) and the lines with which
// Lockstep's programs end.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::supervisor {

class FailureReader {
 public:
  // Text in pieces of any size.
  void read(std::string_view text);

  // "rank 1 on host node2: signal 9 (Killed)", or "" if nothing was said.
  std::string summary() const;
  // What a program said of its own error, or "".
  const std::string& words() const { return program_; }

 private:
  void line(const std::string& text);

  std::string rest_;  // of a line that is not complete
  // What a program said counts more than what mpirun saw of it.
  std::string program_, mpirun_;
  std::string rank_;  // of mpirun's report in several lines
};

}  // namespace lockstep::supervisor
