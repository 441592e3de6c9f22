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
  // Of all rules with these settings: the momentum is that of `sgd`, betas and epsilon are those of `adam`. Decoupled
  // decay follows from `rule`.
  AdamOptions adam = {};
  RmspropOptions rmsprop = {};
  double trust_coefficient = 0.001;  // lars
};
// Makes the rule; the caller owns it.
std::unique_ptr<UpdateRule> make_rule(const RuleOptions& options);

}  // namespace lockstep::optim
