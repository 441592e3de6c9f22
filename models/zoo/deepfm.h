// DeepFM (Guo et al., "DeepFM: a factorization-machine based neural network for CTR prediction", 2017) and Wide & Deep
// (Cheng et al., "Wide & Deep learning for recommender systems", 2016): the sum of a first-order part, of the products
// of all pairs of rows (DeepFM alone), and of a perceptron on all rows and dense numbers. Modules: "first", "table",
// "dense" (DeepFM with dense numbers: a vector for each of them), "deep".
#pragma once

#include "models/zoo/click_parts.h"

namespace lockstep::models {

// The sum over pairs i < j of v_i . v_j for v (samples, vectors, elements): half the square of the sum less the sum of
// squares (Rendle, "Factorization machines", 2010, lemma 3.1). Returns (samples).
Value second_order(Value vectors);

class DeepFm final : public ClickModel {
 public:
  DeepFm(const ClickModelConfig& config, bool pairs);
  Value operator()(const ClickInputs& inputs) const override;

 private:
  nn::Child<FirstOrder> first_;
  IdFields fields_;
  nn::Child<nn::Embedding> table_;
  nn::Child<ClickMlp> deep_;
  Parameter* dense_ = nullptr;  // (dense numbers, dim); null: none
  bool pairs_;
};

ClickModelEntry deepfm_entry();
ClickModelEntry wide_deep_entry();

}  // namespace lockstep::models
