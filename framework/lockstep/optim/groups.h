// Parameter groups: learning rate and decay by parameter name, as PyTorch's param_groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::optim {

// One group. The first group whose pattern matches a parameter's full name applies; `*` stands for any characters. A
// value that a group does not set is the optimizer's.
struct ParameterGroup {
  std::string pattern;    // "fc.*", "*.bias"
  double rate_scale = 1;  // factor on the scheduled learning rate
  std::optional<double> weight_decay = {};
};

// Whether `name` matches the pattern as a whole.
bool matches(const std::string& pattern, const std::string& name);
// Returns the first group that matches the full name, owned by `groups`; null if there is none.
const ParameterGroup* find_group(const std::vector<ParameterGroup>& groups, const std::string& name);

}  // namespace lockstep::optim
