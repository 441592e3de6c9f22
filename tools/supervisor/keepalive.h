// Open MPI's settings by which mpirun notices a host that has gone silent.
#pragma once

#include <map>
#include <string>

namespace lockstep::supervisor {

// Without these mpirun does not notice for minutes that a host has gone silent; with them it does after 6 to 11 s, and
// rides out less: a probe each second after 5 s of silence, the sixth without an answer ends the job. The environment
// ranks below mpirun's own options, so what the user says there stays, and so does what is in the environment already.
std::map<std::string, std::string> keepalive_variables();

}  // namespace lockstep::supervisor
