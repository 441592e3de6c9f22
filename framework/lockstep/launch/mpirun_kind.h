// Which launcher of ranks a command calls: their options, their lists of hosts and the signals that they hand on
// differ.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::launch {

enum class MpirunKind {
  None,     // srun, or a program
  OpenMpi,  // mpirun, orterun, prterun
  Hydra,    // mpiexec of MPICH, of Intel MPI and of others that are made from MPICH
};

// Whether `library`, the MPI library's description of itself, is Open MPI's.
bool is_open_mpi(std::string_view library);

// `word`: the first of a command, as a shell finds it. The file that it leads to tells by its name (mpirun.mpich,
// mpiexec.hydra, orterun); where that is mpirun or mpiexec again, `library`, with which this program is linked,
// decides.
MpirunKind mpirun_kind(std::string_view word, std::string_view library);

// The file that a shell would execute for `word`; empty: there is none in PATH. A word with '/' is returned as it is.
std::filesystem::path find_program(std::string_view word);

}  // namespace lockstep::launch
