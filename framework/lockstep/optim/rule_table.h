// The table of update rules, one row each. The command line, option files and checkpoints take the names from it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "lockstep/optim/rule_options.h"

namespace lockstep::optim {

struct RuleEntry {
  Rule rule;
  std::string_view name;
  double rate;      // default learning rate
  double momentum;  // default momentum
  // The command-line options that this rule reads and at least one other rule does not.
  std::array<std::string_view, 6> options;
  std::unique_ptr<UpdateRule> (*make)(const RuleOptions&);

  constexpr bool reads(std::string_view option) const {
    for (const std::string_view each : options) {
      if (each == option) return true;
    }
    return false;
  }
};

std::unique_ptr<UpdateRule> make_sgd(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_adam(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_rmsprop(const RuleOptions& options);

inline constexpr std::array kRules{
    RuleEntry{Rule::Sgd, "sgd", 0.1, 0.9, {"momentum", "nesterov"}, make_sgd},
    RuleEntry{Rule::Adam, "adam", 0.001, 0.9, {"beta1", "beta2", "eps"}, make_adam},
    RuleEntry{Rule::AdamW, "adamw", 0.001, 0.9, {"beta1", "beta2", "eps"}, make_adam},
    RuleEntry{Rule::Rmsprop, "rmsprop", 0.01, 0, {"momentum", "alpha", "centered", "eps"}, make_rmsprop},
};

const RuleEntry& entry_of(Rule rule);
// The names of the rules that read `option`, or of all rules if it is empty: "adam or adamw".
std::string rule_names(std::string_view option = {}, std::string_view between = " or ");

}  // namespace lockstep::optim
