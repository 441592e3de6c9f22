#include "lockstep/core/error.h"
#include "lockstep/optim/rule_table.h"
#include "lockstep/optim/rules.h"

namespace lockstep::optim {
namespace {

struct PlainSgd {
  static constexpr std::array<std::string_view, 0> kStates{};
  static std::string_view name() { return "sgd"; }
  template <class T>
  auto prepare(const Rates& r) const {
    return [rate = static_cast<T>(r.learning_rate), decay = static_cast<T>(r.weight_decay)](T& w, T g) {
      w -= rate * (g + decay * w);
    };
  }
};

struct MomentumSgd {
  static constexpr std::array<std::string_view, 1> kStates{"momentum"};
  SgdOptions options;
  static std::string_view name() { return "sgd"; }
  template <class T>
  auto prepare(const Rates& r) const {
    return [rate = static_cast<T>(r.learning_rate), decay = static_cast<T>(r.weight_decay),
            momentum = static_cast<T>(options.momentum), nesterov = options.nesterov](T& w, T g, T& m) {
      const T d = g + decay * w;
      m = momentum * m + d;  // m starts at zero, so the first step sets it to d
      w -= rate * (nesterov ? d + momentum * m : m);
    };
  }
};

}  // namespace

std::unique_ptr<UpdateRule> sgd(SgdOptions options) {
  check(options.momentum >= 0 && options.momentum < 1, "sgd", "momentum {} is not in [0, 1)", options.momentum);
  check(!options.nesterov || options.momentum > 0, "sgd", "Nesterov's step needs a momentum above 0");
  if (options.momentum == 0) return std::make_unique<ElementwiseRule<PlainSgd>>(PlainSgd{});
  return std::make_unique<ElementwiseRule<MomentumSgd>>(MomentumSgd{options});
}

std::unique_ptr<UpdateRule> make_sgd(const RuleOptions& options) { return sgd(options.sgd); }

}  // namespace lockstep::optim
