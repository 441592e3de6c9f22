// What a program has to know before the constructors of its libraries run, as they change it or wait for ever. In a
// shared library of Lockstep this code runs after them: it then knows less, and says so.
#pragma once

namespace lockstep::host {

// Whether SIGHUP was ignored when this process started, as nohup has it: UCX 1.18 takes this signal over while it is
// loaded. In a shared library: whether it is ignored now.
bool hangup_was_ignored();

}  // namespace lockstep::host
