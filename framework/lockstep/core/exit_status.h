// Exit codes of programs. docs/commands.md has this table, and the man pages are made with it; docs/reliability.md
// tells how to react to each.
#pragma once

#include <array>

namespace lockstep {

inline constexpr int kExitCommandLine = 2;
inline constexpr int kExitStopped = 75;    // on request, with a whole checkpoint (EX_TEMPFAIL): start again
inline constexpr int kExitStalled = 76;    // the watchdog gave up on a rank
inline constexpr int kExitUntrusted = 77;  // results cannot be trusted: a person should look before the next start

struct ExitStatus {
  int status;
  const char* meaning;
};

// The codes that all programs share. A command with a meaning of its own for one of them says so in its help.
inline constexpr std::array kExitStatuses{
    ExitStatus{0, "done"},
    ExitStatus{1, "an error, which a line on standard error names"},
    ExitStatus{kExitCommandLine, "the command line cannot be used, and nothing was done"},
    ExitStatus{kExitStopped,
               "training was stopped on request or before its time limit, with a whole checkpoint: start again"},
    ExitStatus{kExitStalled, "the watchdog gave up on a rank that made no progress"},
    ExitStatus{kExitUntrusted, "results cannot be trusted: look at the log before the next start"},
};

}  // namespace lockstep
