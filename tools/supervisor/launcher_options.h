// The meaning of the words of a launcher's command line for `lockstep run`: options of Open MPI 4.1 and 5, and of
// Hydra. Pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "lockstep/launch/mpirun_kind.h"

namespace lockstep::supervisor {

struct LauncherOption {
  enum class Meaning {
    Other,
    Ranks,      // the number of all ranks
    Hostfile,   // a file of hosts
    HostList,   // hosts with commas
    Folder,     // in which the program starts
    Elsewhere,  // the program is not looked up as a path of this machine
    Setting,    // the last value, of what the values before it, or the option itself, name
    Places,     // ranks have fixed places
  };

  std::string_view name{};  // without dashes
  std::size_t values = 0;   // words that follow it and belong to it
  Meaning meaning = Meaning::Other;
};

// `word` begins with '-'. `kind` is one of the mpiruns.
LauncherOption launcher_option(launch::MpirunKind kind, std::string_view word);

}  // namespace lockstep::supervisor
