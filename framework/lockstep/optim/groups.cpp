#include "lockstep/optim/groups.h"

#include <fnmatch.h>

namespace lockstep::optim {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

const ParameterGroup* find_group(const std::vector<ParameterGroup>& groups, const std::string& name) {
  for (const ParameterGroup& g : groups) {
    if (matches(g.pattern, name)) return &g;
  }
  return nullptr;
}

}  // namespace lockstep::optim
