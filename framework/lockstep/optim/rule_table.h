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
  double rate, momentum, beta2, epsilon;  // defaults
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
std::unique_ptr<UpdateRule> make_adagrad(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_adamax(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_nadam(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_radam(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_lion(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_lars(const RuleOptions& options);
std::unique_ptr<UpdateRule> make_lamb(const RuleOptions& options);

// Where a rule reads no momentum, beta2 or epsilon, its default is that of most rules.
inline constexpr std::array kRules{
    RuleEntry{Rule::Sgd, "sgd", 0.1, 0.9, 0.999, 1e-8, {"momentum", "nesterov"}, make_sgd},
    RuleEntry{Rule::Adam, "adam", 0.001, 0.9, 0.999, 1e-8, {"beta1", "beta2", "eps"}, make_adam},
    RuleEntry{Rule::AdamW, "adamw", 0.001, 0.9, 0.999, 1e-8, {"beta1", "beta2", "eps"}, make_adam},
    RuleEntry{Rule::Rmsprop, "rmsprop", 0.01, 0, 0.999, 1e-8, {"momentum", "alpha", "centered", "eps"}, make_rmsprop},
    RuleEntry{Rule::Adagrad, "adagrad", 0.01, 0.9, 0.999, 1e-10, {"eps"}, make_adagrad},
    RuleEntry{Rule::Adamax, "adamax", 0.002, 0.9, 0.999, 1e-8, {"beta1", "beta2", "eps"}, make_adamax},
    RuleEntry{Rule::Nadam, "nadam", 0.002, 0.9, 0.999, 1e-8, {"beta1", "beta2", "eps"}, make_nadam},
    RuleEntry{Rule::Radam, "radam", 0.001, 0.9, 0.999, 1e-8, {"beta1", "beta2", "eps"}, make_radam},
    RuleEntry{Rule::Lion, "lion", 1e-4, 0.9, 0.99, 1e-8, {"beta1", "beta2"}, make_lion},
    RuleEntry{Rule::Lars, "lars", 1, 0.9, 0.999, 1e-8, {"momentum", "trust-coefficient", "eps"}, make_lars},
    RuleEntry{Rule::Lamb, "lamb", 0.001, 0.9, 0.999, 1e-6, {"beta1", "beta2", "eps"}, make_lamb},
};

const RuleEntry& entry_of(Rule rule);
// The names of the rules that read `option`, or of all rules if it is empty: "adam or adamw".
std::string rule_names(std::string_view option = {}, std::string_view between = " or ");

}  // namespace lockstep::optim
