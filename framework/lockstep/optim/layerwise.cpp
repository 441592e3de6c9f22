// The rules whose rates depend on norms of whole parameters: LARS and LAMB.
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/optim/rule_table.h"
#include "lockstep/optim/rules.h"

namespace lockstep::optim {
namespace {

struct Lars {
  static constexpr std::array<std::string_view, 1> kStates{"momentum"};
  LarsOptions options;
  static std::string_view name() { return "lars"; }
  template <class T>
  auto prepare(const Rates& r) const {
    return [rate = static_cast<T>(r.learning_rate * r.trust), decay = static_cast<T>(r.weight_decay),
            momentum = static_cast<T>(options.momentum)](T& w, T g, T& m) {
      m = momentum * m + rate * (g + decay * w);
      w -= m;
    };
  }
  template <class T>
  auto step(const Rates& /*rates*/) const {
    return [](T /*w*/, T g, const T& /*m*/) { return g; };
  }
  double trust(const Squares& squares, const Rates& r) const {
    const double values = std::sqrt(squares.values), gradient = std::sqrt(squares.steps);
    if (values == 0 || gradient == 0) return 1;
    return options.coefficient * values / (gradient + r.weight_decay * values + options.epsilon);
  }
};

struct Lamb {
  static constexpr std::array<std::string_view, 2> kStates{"mean", "square"};
  LambOptions options;
  static std::string_view name() { return "lamb"; }
  // The new moments and the step of one element.
  template <class T>
  struct Moments {
    T b1, b2, c1, c2, epsilon, decay, correction, root;
    T operator()(T w, T g, T& m, T& v) const {
      m = b1 * m + c1 * g;
      v = b2 * v + c2 * g * g;
      return correction * m / (std::sqrt(v) * root + epsilon) + decay * w;
    }
  };
  template <class T>
  Moments<T> moments(const Rates& r) const {
    const auto t = static_cast<double>(r.step);
    return {.b1 = static_cast<T>(options.beta1),
            .b2 = static_cast<T>(options.beta2),
            .c1 = static_cast<T>(1 - options.beta1),
            .c2 = static_cast<T>(1 - options.beta2),
            .epsilon = static_cast<T>(options.epsilon),
            .decay = static_cast<T>(r.weight_decay),
            .correction = static_cast<T>(1 / (1 - math::pow(options.beta1, t))),
            .root = static_cast<T>(1 / std::sqrt(1 - math::pow(options.beta2, t)))};
  }
  template <class T>
  auto prepare(const Rates& r) const {
    return [next = moments<T>(r), rate = static_cast<T>(r.learning_rate * r.trust)](T& w, T g, T& m, T& v) {
      w -= rate * next(w, g, m, v);
    };
  }
  template <class T>
  auto step(const Rates& r) const {
    return [next = moments<T>(r)](T w, T g, T m, T v) { return next(w, g, m, v); };
  }
  static double trust(const Squares& squares, const Rates& /*rates*/) {
    if (squares.values == 0 || squares.steps == 0) return 1;
    return std::sqrt(squares.values) / std::sqrt(squares.steps);
  }
};

}  // namespace

std::unique_ptr<UpdateRule> lars(LarsOptions options) {
  check(options.momentum >= 0 && options.momentum < 1, "lars", "momentum {} is not in [0, 1)", options.momentum);
  check(options.coefficient > 0, "lars", "the trust coefficient {} must be above 0", options.coefficient);
  check(options.epsilon >= 0, "lars", "epsilon {} must be at least 0", options.epsilon);
  return std::make_unique<ElementwiseRule<Lars>>(Lars{options});
}

std::unique_ptr<UpdateRule> lamb(LambOptions options) {
  check(options.beta1 >= 0 && options.beta1 < 1, "lamb", "beta1 {} is not in [0, 1)", options.beta1);
  check(options.beta2 >= 0 && options.beta2 < 1, "lamb", "beta2 {} is not in [0, 1)", options.beta2);
  check(options.epsilon > 0, "lamb", "epsilon {} must be above 0", options.epsilon);
  return std::make_unique<ElementwiseRule<Lamb>>(Lamb{options});
}

std::unique_ptr<UpdateRule> make_lars(const RuleOptions& options) {
  return lars(
      {.momentum = options.sgd.momentum, .coefficient = options.trust_coefficient, .epsilon = options.adam.epsilon});
}
std::unique_ptr<UpdateRule> make_lamb(const RuleOptions& options) {
  return lamb({.beta1 = options.adam.beta1, .beta2 = options.adam.beta2, .epsilon = options.adam.epsilon});
}

}  // namespace lockstep::optim
