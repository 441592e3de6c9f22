// Update rules of the rows of sparse tables (graph/table.h): a rule changes the rows that a batch used, and their
// state, and no other row. One thread may call a rule at a time for one row; different rows on different threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::optim {

// The formulas, with g the row's gradient, scaled and clipped by value (plus weight_decay * w), and r the learning
// rate: Sgd: w -= r g. Adagrad: s += g^2; w -= r g / (sqrt(s) + epsilon), as torch.optim.Adagrad (Duchi et al. (2011)).
// AdagradRowwise: one s per row, s += mean(g^2) (Mudigere et al., "Software-hardware co-design for fast and scalable
// training of deep learning recommendation models" (2022)).
// Adam: torch.optim.SparseAdam, which moves the means of touched rows alone and corrects them by the number of updates.
// Ftrl: FTRL-Proximal (McMahan et al., "Ad click prediction: a view from the trenches" (2013)), with l1, l2 and beta.
enum class RowRule : std::uint8_t { Sgd, Adagrad, AdagradRowwise, Adam, Ftrl };

struct RowRuleOptions {
  RowRule rule = RowRule::Sgd;
  double rate_scale = 1;              // factor on the learning rate of the step
  double weight_decay = 0;            // of touched rows
  double beta1 = 0.9, beta2 = 0.999;  // Adam
  double epsilon = -1;  // negative: 1e-10 with Adagrad, 1e-8 with Adam, as PyTorch; 0: with Adagrad's accumulator alone
  double initial_accumulator = 0;   // Adagrad's s and Ftrl's n before the first update
  double l1 = 0, l2 = 0, beta = 1;  // Ftrl
};

// The rule of tables whose full names match: the first group applies, and the options of `all` where none does.
struct TableGroup {
  std::string pattern;  // "*" stands for any characters, as in optim/groups.h
  RowRuleOptions rule = {};
};
struct TableRules {
  RowRuleOptions all = {};
  std::vector<TableGroup> groups = {};
  const RowRuleOptions& of(const std::string& name) const;
};

// The state of a row: its name in checkpoints, and whether a row has one number in place of `width`.
struct RowState {
  std::string_view name;
  bool one_per_row = false;
  double initial = 0;
};
std::vector<RowState> row_states(const RowRuleOptions& options);
std::string_view name_of(RowRule rule);
// Throws Error for settings outside of their ranges.
void check_row_rule(const RowRuleOptions& options);

// The values that change from step to step.
struct RowRates {
  double learning_rate = 0, gradient_scale = 1;
  double clip_value = 0;   // each element of the scaled gradient is brought into [-clip_value, clip_value]; 0: any
  std::int64_t count = 1;  // number of this update, from 1
};
// The update of one step: call it for each touched row with the sum of the row's gradients, and its states in the order
// of row_states(). T is float or double.
template <class T>
class RowUpdate {
 public:
  RowUpdate(const RowRuleOptions& options, const RowRates& rates);
  void operator()(std::int64_t width, const T* gradient, T* values, std::span<T* const> states) const;

 private:
  T mean(T sum, T w) const {
    const T mean = sum * scale_;
    return (mean < -limit_ ? -limit_ : (limit_ < mean ? limit_ : mean)) + decay_ * w;  // a NaN stays a NaN
  }
  void adagrad(std::int64_t n, const T* g, T* w, T* sum) const;
  void rowwise_adagrad(std::int64_t n, const T* g, T* w, T* sum) const;
  void adam(std::int64_t n, const T* g, T* w, T* mean, T* square) const;
  void ftrl(std::int64_t n, const T* g, T* w, T* z, T* squares) const;

  RowRuleOptions options_;
  T rate_, scale_, limit_, decay_, epsilon_;
};

}  // namespace lockstep::optim
