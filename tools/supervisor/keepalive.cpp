#include "tools/supervisor/keepalive.h"

#include <cstdlib>

#include "lockstep/launch/mpirun_words.h"

namespace lockstep::supervisor {

std::map<std::string, std::string> keepalive_variables() {
  std::map<std::string, std::string> set;
  for (const auto& [parameter, value] : launch::keepalive_parameters()) {
    for (const char* prefix : {"OMPI_MCA_", "PRTE_MCA_"}) {  // those of Open MPI 4 and 5
      const std::string name = prefix + parameter;
      if (std::getenv(name.c_str()) == nullptr) set[name] = value;
    }
  }
  return set;
}

}  // namespace lockstep::supervisor
