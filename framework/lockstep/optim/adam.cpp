#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/optim/rule_table.h"
#include "lockstep/optim/rules.h"

namespace lockstep::optim {
namespace {

struct Adam {
  static constexpr std::array<std::string_view, 2> kStates{"mean", "square"};
  AdamOptions options;
  std::string_view name() const { return options.decoupled_decay ? "adamw" : "adam"; }
  template <class T>
  auto prepare(const Rates& r) const {
    const auto t = static_cast<double>(r.step);
    const double correction1 = 1 - math::pow(options.beta1, t), correction2 = 1 - math::pow(options.beta2, t);
    const double coupled = options.decoupled_decay ? 0 : r.weight_decay;
    const double shrink = options.decoupled_decay ? 1 - r.learning_rate * r.weight_decay : 1;
    return [b1 = static_cast<T>(options.beta1), b2 = static_cast<T>(options.beta2),
            c1 = static_cast<T>(1 - options.beta1), c2 = static_cast<T>(1 - options.beta2),
            epsilon = static_cast<T>(options.epsilon), decay = static_cast<T>(coupled), shrink = static_cast<T>(shrink),
            rate = static_cast<T>(r.learning_rate / correction1),
            root = static_cast<T>(1 / std::sqrt(correction2))](T& w, T g, T& m, T& v) {
      w *= shrink;
      const T d = g + decay * w;
      m = b1 * m + c1 * d;
      v = b2 * v + c2 * d * d;
      w -= rate * m / (std::sqrt(v) * root + epsilon);
    };
  }
};

}  // namespace

std::unique_ptr<UpdateRule> adam(AdamOptions options) {
  check(options.beta1 >= 0 && options.beta1 < 1, "adam", "beta1 {} is not in [0, 1)", options.beta1);
  check(options.beta2 >= 0 && options.beta2 < 1, "adam", "beta2 {} is not in [0, 1)", options.beta2);
  check(options.epsilon > 0, "adam", "epsilon {} must be above 0", options.epsilon);
  return std::make_unique<ElementwiseRule<Adam>>(Adam{options});
}

std::unique_ptr<UpdateRule> make_adam(const RuleOptions& options) {
  AdamOptions chosen = options.adam;
  chosen.decoupled_decay = options.rule == Rule::AdamW;
  return adam(chosen);
}

}  // namespace lockstep::optim
