// The settings of an update rule, as command line and option files give them.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {

enum class Rule : std::uint8_t { Sgd, Adam, AdamW, Rmsprop, Adagrad, Adamax, Nadam, Radam, Lion, Lars, Lamb };

struct RuleOptions {
  Rule rule = Rule::Sgd;
  SgdOptions sgd = {.momentum = 0.9};
  // All rules share settings of one name: each reads its momentum from `sgd`, its betas and its epsilon from `adam`.
  // The decay of `adam` is decoupled if `rule` is AdamW.
  AdamOptions adam = {};
  RmspropOptions rmsprop = {};
  double trust_coefficient = 0.001;  // lars
};
// Makes the rule; the caller owns it.
std::unique_ptr<UpdateRule> make_rule(const RuleOptions& options);

}  // namespace lockstep::optim
