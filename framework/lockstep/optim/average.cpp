#include "lockstep/optim/average.h"

#include "lockstep/core/error.h"
#include "lockstep/optim/typed_rule.h"

namespace lockstep::optim {
namespace {

class AveragedRule final : public TypedRule<AveragedRule> {
 public:
  AveragedRule(std::shared_ptr<UpdateRule> rule, double decay) : rule_(std::move(rule)), decay_(decay) {}
  std::string_view name() const override { return rule_->name(); }
  std::string settings() const override { return rule_->settings(); }
  std::vector<std::string_view> states() const override {
    std::vector<std::string_view> names = rule_->states();
    names.push_back(kAverageState);
    return names;
  }
  bool uses_norms() const override { return rule_->uses_norms(); }
  double trust(const Squares& squares, const Rates& rates) const override { return rule_->trust(squares, rates); }

 private:
  friend TypedRule<AveragedRule>;
  template <class T>
  Squares sum(std::int64_t n, const T* value, const T* gradient, std::span<T* const> states, const Rates& rates) const {
    return rule_->squares(n, value, gradient, states.first(states.size() - 1), rates);
  }
  template <class T>
  void run(std::int64_t n, T* value, const T* gradient, std::span<T* const> states, const Rates& rates) const {
    rule_->apply(n, value, gradient, states.first(states.size() - 1), rates);
    if (decay_ == 0) return;
    T* average = states.back();
    const T rest = static_cast<T>(1 - decay_);
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) average[i] += rest * (value[i] - average[i]);
  }
  std::shared_ptr<UpdateRule> rule_;
  double decay_;
};

}  // namespace

std::shared_ptr<UpdateRule> with_average(std::shared_ptr<UpdateRule> rule, const AverageOptions& options) {
  check(options.ema >= 0 && options.ema < 1, "average",
        "the decay of the moving average is {}, expected 0 or more, below 1", options.ema);
  check(options.swa_start >= 0, "average", "the mean of weights begins at epoch {}, expected 1 or more, or 0 for none",
        options.swa_start);
  check(options.ema == 0 || options.swa_start == 0, "average",
        "a moving average of decay {} and a mean of weights from epoch {}, expected one of the two", options.ema,
        options.swa_start);
  return options.any() ? std::make_shared<AveragedRule>(std::move(rule), options.ema) : rule;
}

}  // namespace lockstep::optim
