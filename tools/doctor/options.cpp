#include "tools/doctor/options.h"

#include <cstdlib>

#include "lockstep/launch/ports.h"

namespace lockstep::tools {

void read_environment(DoctorOptions& options) {
  const auto take = [](std::string& option, const char* name) {
    const char* value = std::getenv(name);
    if (option.empty() && value != nullptr) option = value;
  };
  take(options.interface, "LOCKSTEP_INTERFACE");
  if (!options.cheap) take(options.data_dir, "LOCKSTEP_DATA_DIR");
}

launch::PortRange parse_ports(const std::string& text) {
  return text.empty() ? launch::PortRange{} : launch::parse_port_range(text);
}

}  // namespace lockstep::tools
