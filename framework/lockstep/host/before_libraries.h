// What a program finds out before the constructors of its libraries run: whether OpenBLAS would wait for ever for
// memory (the program then ends with one line), and whether SIGHUP was ignored, as UCX 1.18 takes this signal over
// while it is loaded. A program that calls keep_hangup_ignored() has this code; a shared library of Lockstep, whose
// code runs after the constructors, has none of it.
#pragma once

namespace lockstep::host {

// Ignores SIGHUP again if it was ignored when this process started, as nohup has it; a process that this one becomes or
// starts then ignores it, too. For main(), before threads.
void keep_hangup_ignored();

}  // namespace lockstep::host
