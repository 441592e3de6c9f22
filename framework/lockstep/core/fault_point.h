// Named points at which a test may ask for a fault, to show that nothing is lost and no error is hidden. Without
// LOCKSTEP_FAULT in the environment a point costs one comparison. The variable holds faults, separated by spaces:
//
//   LOCKSTEP_FAULT="checkpoint.write:kill:rank=0:at=40:once=/tmp/fired step.begin:sleep=600:rank=2:until=/tmp/go"
//
// POINT:ACTION, where an action is kill (SIGKILL to oneself), stop (SIGSTOP), sleep=SECONDS, throw (an Error) or
// corrupt (see fault_wanted); `rank` and `at` (the step, or the point's own count) restrict it; without them it fires
// on every rank and at every step; `once` names a file that is made when it fires, after which it does not fire again,
// so that a restarted job continues; `until` names a file whose presence keeps the fault from firing and ends a sleep,
// so that a test holds a job until it has seen the event that it waits for. Any thread may call these; an Error names a
// fault that cannot be read.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

// Tells the rank of this process. Until then it is -1: only faults without `rank` fire.
void set_fault_rank(int rank);

// Performs the fault that LOCKSTEP_FAULT requests at this point; without one it does nothing.
void fault_point(std::string_view point, std::int64_t at = 0);

// Whether the caller is to damage its own data here (corrupt).
bool fault_wanted(std::string_view point, std::int64_t at = 0);

}  // namespace lockstep
