// The recommender of Naumov et al., "Deep learning recommendation model for personalization and recommendation
// systems", 2019: a perceptron makes a vector of the dense numbers; the products of all pairs of this vector and the
// ids' rows, with the vector itself, go through a second perceptron. Modules: "table", "bottom" (unless there are no
// dense numbers), "top".
#pragma once

#include <memory>

#include "models/zoo/click_parts.h"

namespace lockstep::models {

class Dlrm final : public ClickModel {
 public:
  explicit Dlrm(const ClickModelConfig& config);
  ~Dlrm() override;
  Value operator()(const ClickInputs& inputs) const override;

 private:
  IdFields fields_;
  nn::Child<nn::Embedding> table_;
  std::unique_ptr<nn::Child<ClickMlp>> bottom_;  // null: no dense numbers
  nn::Child<ClickMlp> top_;
};

ClickModelEntry dlrm_entry();

}  // namespace lockstep::models
