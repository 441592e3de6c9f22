// The subject of the checks, as one rank knows it. Before a job there is one such process per host, which answers for
// the ranks that are to run there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/launch/ports.h"

namespace lockstep::preflight {

struct NetworkSubject {
  std::string interface {};  // names, addresses or networks that MPI was told to use; empty: it chooses
  std::string exclude{};     // the same of those that MPI was told not to use, where `interface` is empty
  launch::PortRange ports = {};
  std::vector<std::string> hosts{};  // by node: the names by which the hosts of the job reach each other
};

// The program and the data set that the job is to have, where they were named.
struct NamedFiles {
  bool named = false;
  std::vector<std::string> missing{};  // one text for each that is not here
  std::vector<std::string> unfit{};    // one for each that is here and is of no use
};

// Texts that have to be the same on all ranks. An empty text is not looked at.
struct SameTexts {
  std::string program{}, build{}, options{}, arithmetic{}, data{};
};

struct Subject {
  int rank = 0, node = 0, local_rank = 0, local_ranks = 1;
  std::string host;  // its name
  int threads = 1;   // of each rank
  SameTexts same = {};
  std::filesystem::path output{};  // folder of checkpoints; empty: not known
  NetworkSubject network = {};
  NamedFiles files = {};

  bool speaks() const { return local_rank == 0; }  // for its node
};

}  // namespace lockstep::preflight
