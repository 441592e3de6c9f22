#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/optim/rule_table.h"
#include "lockstep/optim/rules.h"

namespace lockstep::optim {
namespace {

// The states are the running square, then with `centered` the running mean, then with momentum the momentum.
template <bool kCentered, bool kMomentum>
struct Rmsprop {
  static constexpr auto kStates = [] {
    std::array<std::string_view, 1 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0)> names{"square"};
    if constexpr (kCentered) names[1] = "mean";
    if constexpr (kMomentum) names.back() = "momentum";
    return names;
  }();
  RmspropOptions options;
  static std::string_view name() { return "rmsprop"; }
  template <class T>
  auto prepare(const Rates& r) const {
    return [alpha = static_cast<T>(options.alpha), rest = static_cast<T>(1 - options.alpha),
            epsilon = static_cast<T>(options.epsilon), momentum = static_cast<T>(options.momentum),
            decay = static_cast<T>(r.weight_decay),
            rate = static_cast<T>(r.learning_rate)](T& w, T g, T& square, auto&... more) {
      static_cast<void>(momentum);  // of the rules that have some
      T* const states[] = {&square, &more...};
      const T d = g + decay * w;
      square = alpha * square + rest * d * d;
      T variance = square;
      if constexpr (kCentered) {
        T& mean = *states[1];
        mean += rest * (d - mean);
        variance = std::max(square - mean * mean, T{0});  // below 0 by rounding alone
      }
      T step = d / (std::sqrt(variance) + epsilon);
      if constexpr (kMomentum) {
        T& velocity = *states[sizeof...(more)];
        velocity = momentum * velocity + step;
        step = velocity;
      }
      w -= rate * step;
    };
  }
};

template <bool kCentered>
std::unique_ptr<UpdateRule> make(const RmspropOptions& options) {
  if (options.momentum == 0)
    return std::make_unique<ElementwiseRule<Rmsprop<kCentered, false>>>(Rmsprop<kCentered, false>{options});
  return std::make_unique<ElementwiseRule<Rmsprop<kCentered, true>>>(Rmsprop<kCentered, true>{options});
}

}  // namespace

std::unique_ptr<UpdateRule> rmsprop(RmspropOptions options) {
  check(options.alpha >= 0 && options.alpha < 1, "rmsprop", "alpha {} is not in [0, 1)", options.alpha);
  check(options.epsilon > 0, "rmsprop", "epsilon {} must be above 0", options.epsilon);
  check(options.momentum >= 0 && options.momentum < 1, "rmsprop", "momentum {} is not in [0, 1)", options.momentum);
  return options.centered ? make<true>(options) : make<false>(options);
}

std::unique_ptr<UpdateRule> make_rmsprop(const RuleOptions& options) {
  RmspropOptions chosen = options.rmsprop;
  chosen.epsilon = options.adam.epsilon;
  chosen.momentum = options.sgd.momentum;
  return rmsprop(chosen);
}

}  // namespace lockstep::optim
