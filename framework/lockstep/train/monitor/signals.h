// Turns signals to a training program into requests: SIGTERM, SIGINT, SIGHUP (unless it was ignored, as under nohup),
// SIGUSR2 and SIGXCPU (the soft limit of processor time) stop the run with a checkpoint; SIGUSR1 writes a checkpoint.
// Works also if the parent process blocked these signals or ignores SIGCHLD. A second stop signal, one second or more
// after the first, ends the process as without handlers, but for SIGXCPU, which Linux repeats every second; an earlier
// one counts as the same signal, because Slurm, a launcher and a wrapper may each forward it. For programs, once, in
// the main thread; a library does not change its caller's signals.
#pragma once

namespace lockstep::train {

void handle_signals();
// Restores the default action for a process that has failed: signals then end it, as when another rank aborts the job.
void leave_signals();

}  // namespace lockstep::train
