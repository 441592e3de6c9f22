// Two towers (Huang et al., "Learning deep structured semantic models", 2013; Yi et al., "Sampling-bias-corrected
// neural modeling", 2019): one perceptron makes a vector of the user's ids and the dense numbers, another one a vector
// of the item's ids. Vectors have length 1, and the logit is their product divided by a temperature. The best items of
// a user are those with the largest products: their vectors can be computed ahead. Modules: "table", "user", "item";
// with item frequencies, the buffer "log_q".
#pragma once

#include <memory>
#include <vector>

#include "lockstep/core/partition.h"
#include "models/zoo/click_parts.h"

namespace lockstep::models {

class TwoTowers final : public ClickModel {
 public:
  // Throws Error unless user and item have a field each.
  explicit TwoTowers(const ClickModelConfig& config);

  Value operator()(const ClickInputs& inputs) const override;                             // logits
  Value user(const ClickInputs& inputs) const;                                            // (samples, dim)
  Value item(const ClickInputs& in) const { return item_vectors(item_columns(in.ids)); }  // (samples, dim)
  Value item_columns(Value ids) const;      // of the ids of samples, those of the item
  Value item_vectors(Value columns) const;  // (items, columns of an item) -> (items, dim)
  // Of items, i32 (items), the rows of their first field, the logarithms of their frequencies as candidates in
  // training; empty: the model has none.
  Value log_q(Value item_ids) const;
  double temperature() const { return temperature_; }

 private:
  Value tower(const nn::Child<ClickMlp>& mlp, Value ids, Range fields, Value dense) const;

  ClickModelConfig config_;
  double temperature_;
  IdFields fields_;
  nn::Child<nn::Embedding> table_;
  nn::Child<ClickMlp> user_, item_;
  Parameter* log_q_ = nullptr;
};

ClickModelEntry two_towers_entry();

}  // namespace lockstep::models
