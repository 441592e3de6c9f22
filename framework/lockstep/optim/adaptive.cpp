// Adagrad and the relatives of Adam: Adamax, NAdam, RAdam.
#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/optim/rule_table.h"
#include "lockstep/optim/rules.h"

namespace lockstep::optim {
namespace {

struct Adagrad {
  static constexpr std::array<std::string_view, 1> kStates{"square"};
  AdagradOptions options;
  static std::string_view name() { return "adagrad"; }
  template <class T>
  auto prepare(const Rates& r) const {
    return [epsilon = static_cast<T>(options.epsilon), decay = static_cast<T>(r.weight_decay),
            rate = static_cast<T>(r.learning_rate)](T& w, T g, T& square) {
      const T d = g + decay * w;
      square += d * d;
      w -= rate * d / (std::sqrt(square) + epsilon);
    };
  }
};

struct Adamax {
  static constexpr std::array<std::string_view, 2> kStates{"mean", "largest"};
  AdamOptions options;
  static std::string_view name() { return "adamax"; }
  template <class T>
  auto prepare(const Rates& r) const {
    const double correction = 1 - math::pow(options.beta1, static_cast<double>(r.step));
    return
        [b1 = static_cast<T>(options.beta1), b2 = static_cast<T>(options.beta2), c1 = static_cast<T>(1 - options.beta1),
         epsilon = static_cast<T>(options.epsilon), decay = static_cast<T>(r.weight_decay),
         rate = static_cast<T>(r.learning_rate / correction)](T& w, T g, T& m, T& u) {
          const T d = g + decay * w;
          m = b1 * m + c1 * d;
          const T old = b2 * u, now = std::abs(d) + epsilon;
          u = old > now ? old : now;  // a NaN of the gradient stays
          w -= rate * m / u;
        };
  }
};

constexpr double kMomentumDecay = 0.004;

// The momentum of a step (Dozat's mu_t).
double nadam_momentum(double beta1, std::int64_t step) {
  return beta1 * (1 - 0.5 * math::pow(0.96, static_cast<double>(step) * kMomentumDecay));
}

struct Nadam {
  static constexpr std::array<std::string_view, 2> kStates{"mean", "square"};
  AdamOptions options;
  // By step, from 0: the product of the momenta up to it. Later products are less than half a unit of 1 in its last
  // place, and count as 0.
  std::vector<double> products;
  explicit Nadam(const AdamOptions& o) : options(o), products{1} {
    constexpr double kLeast = 1e-17;
    while (products.back() > kLeast)
      products.push_back(products.back() * nadam_momentum(o.beta1, static_cast<std::int64_t>(products.size())));
  }
  double product(std::int64_t step) const {
    return std::cmp_less(step, products.size()) ? products[static_cast<std::size_t>(step)] : 0;
  }
  static std::string_view name() { return "nadam"; }
  template <class T>
  auto prepare(const Rates& r) const {
    const double root = 1 / std::sqrt(1 - math::pow(options.beta2, static_cast<double>(r.step)));
    const double of_gradient = (1 - nadam_momentum(options.beta1, r.step)) / (1 - product(r.step));
    const double of_mean = nadam_momentum(options.beta1, r.step + 1) / (1 - product(r.step + 1));
    return [b1 = static_cast<T>(options.beta1), b2 = static_cast<T>(options.beta2),
            c1 = static_cast<T>(1 - options.beta1), c2 = static_cast<T>(1 - options.beta2),
            epsilon = static_cast<T>(options.epsilon), decay = static_cast<T>(r.weight_decay),
            root = static_cast<T>(root), gradient_rate = static_cast<T>(r.learning_rate * of_gradient),
            mean_rate = static_cast<T>(r.learning_rate * of_mean)](T& w, T g, T& m, T& v) {
      const T d = g + decay * w;
      m = b1 * m + c1 * d;
      v = b2 * v + c2 * d * d;
      w -= (gradient_rate * d + mean_rate * m) / (std::sqrt(v) * root + epsilon);
    };
  }
};

struct Radam {
  static constexpr std::array<std::string_view, 2> kStates{"mean", "square"};
  AdamOptions options;
  static std::string_view name() { return "radam"; }
  template <class T>
  auto prepare(const Rates& r) const {
    const auto t = static_cast<double>(r.step);
    const double power = math::pow(options.beta2, t), correction2 = 1 - power;
    const double longest = 2 / (1 - options.beta2) - 1;           // rho_inf
    const double length = longest - 2 * t * power / correction2;  // rho_t
    const bool rectified = length > 5;
    const double rectification =
        rectified ? std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)) : 1;
    const double rate =
        r.learning_rate / (1 - math::pow(options.beta1, t)) * (rectified ? rectification * std::sqrt(correction2) : 1);
    return [rectified, b1 = static_cast<T>(options.beta1), b2 = static_cast<T>(options.beta2),
            c1 = static_cast<T>(1 - options.beta1), c2 = static_cast<T>(1 - options.beta2),
            epsilon = static_cast<T>(options.epsilon), decay = static_cast<T>(r.weight_decay),
            rate = static_cast<T>(rate)](T& w, T g, T& m, T& v) {
      const T d = g + decay * w;
      m = b1 * m + c1 * d;
      v = b2 * v + c2 * d * d;
      w -= rate * m / (rectified ? std::sqrt(v) + epsilon : T{1});
    };
  }
};

void check_adam(const char* site, const AdamOptions& options) {
  check(options.beta1 >= 0 && options.beta1 < 1, site, "beta1 {} is not in [0, 1)", options.beta1);
  check(options.beta2 >= 0 && options.beta2 < 1, site, "beta2 {} is not in [0, 1)", options.beta2);
  check(options.epsilon > 0, site, "epsilon {} must be above 0", options.epsilon);
}

}  // namespace

std::unique_ptr<UpdateRule> adagrad(AdagradOptions options) {
  check(options.epsilon > 0, "adagrad", "epsilon {} must be above 0", options.epsilon);
  return std::make_unique<ElementwiseRule<Adagrad>>(Adagrad{options});
}

std::unique_ptr<UpdateRule> adamax(AdamOptions options) {
  check_adam("adamax", options);
  return std::make_unique<ElementwiseRule<Adamax>>(Adamax{options});
}

std::unique_ptr<UpdateRule> nadam(AdamOptions options) {
  check_adam("nadam", options);
  return std::make_unique<ElementwiseRule<Nadam>>(Nadam(options));
}

std::unique_ptr<UpdateRule> radam(AdamOptions options) {
  check_adam("radam", options);
  return std::make_unique<ElementwiseRule<Radam>>(Radam{options});
}

std::unique_ptr<UpdateRule> make_adagrad(const RuleOptions& options) {
  return adagrad({.epsilon = options.adam.epsilon});
}
std::unique_ptr<UpdateRule> make_adamax(const RuleOptions& options) { return adamax(options.adam); }
std::unique_ptr<UpdateRule> make_nadam(const RuleOptions& options) { return nadam(options.adam); }
std::unique_ptr<UpdateRule> make_radam(const RuleOptions& options) { return radam(options.adam); }

}  // namespace lockstep::optim
