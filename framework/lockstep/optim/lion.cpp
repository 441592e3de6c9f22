#include "lockstep/core/error.h"
#include "lockstep/optim/rule_table.h"
#include "lockstep/optim/rules.h"

namespace lockstep::optim {
namespace {

struct Lion {
  static constexpr std::array<std::string_view, 1> kStates{"mean"};
  LionOptions options;
  static std::string_view name() { return "lion"; }
  template <class T>
  auto prepare(const Rates& r) const {
    return
        [b1 = static_cast<T>(options.beta1), c1 = static_cast<T>(1 - options.beta1), b2 = static_cast<T>(options.beta2),
         c2 = static_cast<T>(1 - options.beta2), shrink = static_cast<T>(1 - r.learning_rate * r.weight_decay),
         rate = static_cast<T>(r.learning_rate)](T& w, T g, T& m) {
          const T d = b1 * m + c1 * g;
          // Of a NaN both comparisons are false, and the last branch hands it on.
          const T sign = d > 0 ? T{1} : (d < 0 ? T{-1} : d);
          w = shrink * w - rate * sign;
          m = b2 * m + c2 * g;
        };
  }
};

}  // namespace

std::unique_ptr<UpdateRule> lion(LionOptions options) {
  check(options.beta1 >= 0 && options.beta1 < 1, "lion", "beta1 {} is not in [0, 1)", options.beta1);
  check(options.beta2 >= 0 && options.beta2 < 1, "lion", "beta2 {} is not in [0, 1)", options.beta2);
  return std::make_unique<ElementwiseRule<Lion>>(Lion{options});
}

std::unique_ptr<UpdateRule> make_lion(const RuleOptions& options) {
  return lion({.beta1 = options.adam.beta1, .beta2 = options.adam.beta2});
}

}  // namespace lockstep::optim
