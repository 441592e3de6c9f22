// `lockstep launch-rank PROGRAM...`: what mpirun starts for each rank below `lockstep launch`. It sets the variables
// that torchrun's programs read (RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR, MASTER_PORT),
// goes to the folder in which the node's launcher was started, and becomes the program.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::launcher {

// For the environment of mpirun and of each node's daemon: `node` is the node's number, `words` the command that this
// node's ranks run in place of mpirun's (empty: mpirun's), `wrapper` a program of this node that becomes each rank's
// program (empty: none).
std::map<std::string, std::string> node_variables(int node, const std::vector<std::string>& words,
                                                  const std::string& wrapper);

// The variables of one rank, from its environment as MPI's launcher made it.
using Variables = std::map<std::string, std::string>;
Variables rank_variables(const Variables& environment, int cores);

// Becomes the program; returns the exit status (126, 127) with a message on stderr if that fails.
int become_rank(std::vector<std::string> words);

// The folder of this program's file, and the file's name.
std::string own_folder();
std::string own_name();

}  // namespace lockstep::launcher
