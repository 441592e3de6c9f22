// Signals of a training program become requests: SIGTERM, SIGINT, SIGHUP (unless it was ignored, as under nohup) and
// SIGUSR2 stop it with a checkpoint, SIGUSR1 writes one and goes on. A parent that blocked them, or that ignores the
// end of its children, does not make the program deaf. A second signal to stop, a second or more after the first, ends
// the process as it would without handlers; sooner it is the same one that came on two ways (Slurm, a launcher and a
// wrapper may each pass it on). For programs, once, in the main thread; a library leaves its caller's signals alone.
#pragma once

namespace lockstep::train {

void handle_signals();
// Of a process that has failed: from now on they end it, as an abort of the job by another rank does.
void leave_signals();

}  // namespace lockstep::train
