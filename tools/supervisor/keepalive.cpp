#include "tools/supervisor/keepalive.h"

#include <cstdlib>
#include <utility>

namespace lockstep::supervisor {

std::map<std::string, std::string> keepalive_variables() {
  std::map<std::string, std::string> set;
  for (const auto& [name, value] : {std::pair{"OMPI_MCA_oob_tcp_keepalive_time", "5"},
                                    {"OMPI_MCA_oob_tcp_keepalive_intvl", "1"},
                                    {"OMPI_MCA_oob_tcp_keepalive_probes", "6"}}) {
    if (std::getenv(name) == nullptr) set[name] = value;
  }
  return set;
}

}  // namespace lockstep::supervisor
