#include "lockstep/optim/rule_options.h"

namespace lockstep::optim {

std::unique_ptr<UpdateRule> make_rule(const RuleOptions& options) {
  if (options.rule == Rule::Sgd) return sgd(options.sgd);
  AdamOptions chosen = options.adam;
  chosen.decoupled_decay = options.rule == Rule::AdamW;
  return adam(chosen);
}

}  // namespace lockstep::optim
