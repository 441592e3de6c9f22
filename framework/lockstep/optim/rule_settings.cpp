#include <fmt/format.h>

#include "lockstep/optim/rules.h"

namespace lockstep::optim {

std::string text_of(const SgdOptions& o) {
  return fmt::format("momentum {}{}", o.momentum, o.nesterov ? " of Nesterov" : "");
}

// The name of the rule says whether the decay is decoupled.
std::string text_of(const AdamOptions& o) {
  return fmt::format("beta1 {}, beta2 {}, epsilon {}", o.beta1, o.beta2, o.epsilon);
}

std::string text_of(const RmspropOptions& o) {
  return fmt::format("alpha {}, epsilon {}, momentum {}{}", o.alpha, o.epsilon, o.momentum,
                     o.centered ? ", centered" : "");
}

std::string text_of(const AdagradOptions& o) { return fmt::format("epsilon {}", o.epsilon); }

std::string text_of(const LionOptions& o) { return fmt::format("beta1 {}, beta2 {}", o.beta1, o.beta2); }

std::string text_of(const LarsOptions& o) {
  return fmt::format("momentum {}, coefficient {}, epsilon {}", o.momentum, o.coefficient, o.epsilon);
}

std::string text_of(const LambOptions& o) {
  return fmt::format("beta1 {}, beta2 {}, epsilon {}", o.beta1, o.beta2, o.epsilon);
}

}  // namespace lockstep::optim
