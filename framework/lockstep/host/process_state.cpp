#include "lockstep/host/process_state.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "lockstep/core/format.h"

namespace lockstep::host {
namespace {

constexpr int kStartField = 22;  // of /proc/PID/stat, counted from 1; the state is the third

const char* meaning(char state) {
  switch (state) {
    case 'R':
      return "runs";
    case 'S':
      return "sleeps";
    case 'D':
      return "waits for a device or a file system";
    case 'T':
      return "is stopped";
    case 't':
      return "is held by a debugger";
    case 'Z':
    case 'X':
      return "has ended";
    default:
      return "is in an unknown state";
  }
}

}  // namespace

std::string ProcessState::str() const {
  if (state == 0) return "is gone";
  return formatted("{} (state {}{}{})", meaning(state), state, waits_in.empty() ? "" : ", in ", waits_in);
}

ProcessState process_state(int process) {
  ProcessState found;
  std::ifstream stat(formatted("/proc/{}/stat", process));
  std::string line;
  if (!std::getline(stat, line, '\0')) return found;
  // The name in parentheses may contain any character, also newlines.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string field;
  for (int i = 3; i <= kStartField && fields >> field; ++i) {
    if (i == 3) found.state = field[0];
    if (i == kStartField) found.start = std::stoll(field);
  }
  std::ifstream wchan(formatted("/proc/{}/wchan", process));
  if (std::getline(wchan, found.waits_in) && found.waits_in == "0") found.waits_in.clear();
  return found;
}

}  // namespace lockstep::host
