#include "lockstep/optim/groups.h"

#include <fnmatch.h>

namespace lockstep::optim {

bool matches(const std::string& pattern, const std::string& name) {
  return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

ParameterGroup settings_of(const std::vector<ParameterGroup>& groups, const std::string& name) {
  ParameterGroup settings{.pattern = name};
  for (const ParameterGroup& g : groups) {
    if (!matches(g.pattern, name)) continue;
    if (!settings.rate_scale) settings.rate_scale = g.rate_scale;
    if (!settings.weight_decay) settings.weight_decay = g.weight_decay;
  }
  return settings;
}

}  // namespace lockstep::optim
