// The mpirun command of a job that `lockstep launch` starts. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/launch/mpirun_kind.h"
#include "lockstep/launch/mpirun_words.h"

namespace lockstep::launcher {

struct MpirunLine {
  launch::MpirunKind kind = launch::MpirunKind::OpenMpi;
  bool here = false;       // all ranks are on this machine
  std::string hosts{};     // "a:8,b:8", for --host
  std::string hostfile{};  // in its place
  int ranks = 0;           // 0: as many as there are slots
  int agents = 0;          // nodes of a job whose launchers wait on each node for the daemons; 0: daemons start by ssh
  std::string network{};   // in which all nodes reach node 0, "10.1.0.0/16"; empty: unknown
  std::optional<launch::PortPlan> ports{};
  int ssh_port = 0;                                // 0: ssh's own choice
  std::string own_name = "lockstep";               // this program, as it is found in PATH on all nodes
  std::vector<std::string> extra{};                // further words for mpirun, the user's own among them
  std::map<std::string, std::string> variables{};  // for the programs on all hosts
  std::vector<std::string> program{};
};

using ReadVariable = launch::ReadVariable;
std::vector<std::string> mpirun_words(const MpirunLine& line, const ReadVariable& variable);

}  // namespace lockstep::launcher
