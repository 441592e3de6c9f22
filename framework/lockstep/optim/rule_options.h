// The settings of an update rule, as command line and option files give them.
#pragma once

#include <cstdint>
#include <memory>

#include "lockstep/optim/update_rule.h"

namespace lockstep::optim {

enum class Rule : std::uint8_t { Sgd, Adam, AdamW, Rmsprop };

struct RuleOptions {
  Rule rule = Rule::Sgd;
  SgdOptions sgd = {.momentum = 0.9};
  AdamOptions adam = {};        // decoupled decay follows from `rule`
  RmspropOptions rmsprop = {};  // its epsilon is that of `adam`, its momentum that of `sgd`
};
// Makes the rule; the caller owns it.
std::unique_ptr<UpdateRule> make_rule(const RuleOptions& options);

}  // namespace lockstep::optim
