// Parameter groups: learning rate and decay by parameter name, as PyTorch's param_groups.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::optim {

// Settings of parameters whose full names match; `*` stands for any characters. Each setting of a parameter is that
// of the first group which matches its name and has the setting, so one group may scale a rate and another one set the
// decay. Settings that no group has come from the optimizer.
struct ParameterGroup {
  std::string pattern;                    // "fc.*", "*.bias"
  std::optional<double> rate_scale = {};  // factor on the scheduled learning rate
  std::optional<double> weight_decay = {};
};

// Whether `name` matches the pattern as a whole.
bool matches(const std::string& pattern, const std::string& name);
// Returns the settings of the parameter with this full name, with `name` as the pattern.
ParameterGroup settings_of(const std::vector<ParameterGroup>& groups, const std::string& name);

}  // namespace lockstep::optim
