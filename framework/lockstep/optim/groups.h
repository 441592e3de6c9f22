// Parameter groups: learning rate and decay by parameter name, as PyTorch's param_groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::optim {

// The first group whose pattern fits a parameter's full name applies; `*` stands for any characters. What a group
// leaves open is the optimizer's.
struct ParameterGroup {
  std::string pattern;    // "fc.*", "*.bias"
  double rate_scale = 1;  // times the scheduled learning rate
  std::optional<double> weight_decay = {};
};

bool matches(const std::string& pattern, const std::string& name);
const ParameterGroup* find_group(const std::vector<ParameterGroup>& groups, const std::string& name);

}  // namespace lockstep::optim
