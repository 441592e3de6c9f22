// Exit codes of programs other than 0 and 1; docs/reliability.md describes how to react to each.
#pragma once

namespace lockstep {

inline constexpr int kExitCommandLine = 2;
inline constexpr int kExitStopped = 75;    // on request, with a whole checkpoint (EX_TEMPFAIL): start again
inline constexpr int kExitStalled = 76;    // the watchdog gave up on a rank
inline constexpr int kExitUntrusted = 77;  // results cannot be trusted: a person should look before the next start

}  // namespace lockstep
