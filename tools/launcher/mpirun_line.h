// The mpirun command of a job that `lockstep launch` starts. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::launcher {

struct MpirunLine {
  std::string hosts{};                // "a:8,b:8", for --host
  std::string hostfile{};             // in its place
  int ranks = 0;                      // 0: as many as there are slots
  bool through_agents = false;        // daemons are started by launchers that wait on the other nodes, not by ssh
  int nodes = 1;                      // of a job through agents
  std::string network{};              // in which all nodes reach node 0, "10.1.0.0/16"; "": unknown
  int ssh_port = 0;                   // 0: ssh's own choice
  bool root = false;                  // this process is root's, which Open MPI refuses unless told
  bool tag_output = false;            // the rank in front of each line
  std::string own_name = "lockstep";  // this program, as it is found in PATH on all nodes
  std::vector<std::string> extra{};   // the user's own words for mpirun
  std::map<std::string, std::string> variables{};  // for the programs on all hosts
  std::vector<std::string> program{};
};

// Reads an environment variable.
using ReadVariable = std::function<std::optional<std::string>(const std::string&)>;
std::vector<std::string> mpirun_words(const MpirunLine& line, const ReadVariable& variable);

// "--mca a b --tag 'x y'" as a shell would split it, without its expansions. Throws Error for an open quote.
std::vector<std::string> split_words(const std::string& text);

}  // namespace lockstep::launcher
