// Finds the rank that failed first in the text of a job's stderr: mpirun's own reports (Open MPI, Hydra) and the lines
// with which Lockstep's programs end.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::supervisor {

class FailureReader {
 public:
  // Text in pieces of any size.
  void read(std::string_view text);

  // "rank 1 on host node2: signal 9 (Killed)", or "" without such a report.
  std::string summary() const;
  // A program's own message about its error, or "".
  const std::string& words() const { return program_; }
  // Whether mpirun has reported that it lost a host.
  bool lost_host() const { return lost_host_; }

 private:
  void line(const std::string& text);
  void line_of_hydra(const std::string& text);

  std::string rest_;  // of a line that is not complete
  // A program's own message counts more than mpirun's report about it.
  std::string program_, mpirun_;
  std::string rank_;  // of mpirun's report in several lines; of Hydra's: the process
  bool lost_host_ = false;
  std::string notice_;  // of mpirun about a signal, so far: Open MPI 5 breaks this sentence into lines
};

}  // namespace lockstep::supervisor
