// A sparse table behind a bag, and a linear layer: what rows_tables.py compares with torch.nn.EmbeddingBag.
#pragma once

#include <nlohmann/json.hpp>

#include "lockstep/losses/regression.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/nn/layers.h"
#include "lockstep/optim/row_rule.h"
#include "lockstep/plan/trace.h"

namespace lockstep::parity {

inline BagMode bag_mode(const nlohmann::json& request) {
  const std::string mode = request.at("bag");
  return mode == "sum" ? BagMode::Sum : mode == "mean" ? BagMode::Mean : BagMode::Max;
}

inline optim::RowRuleOptions table_rule(const nlohmann::json& request) {
  const std::string rule = request.value("table_optimizer", "sgd");
  return {.rule = rule == "adam"      ? optim::RowRule::Adam
                  : rule == "adagrad" ? optim::RowRule::Adagrad
                                      : optim::RowRule::Sgd};
}

struct TableModel : nn::Module {
  explicit TableModel(const nlohmann::json& request)
      : bag(this, "bag",
            nn::EmbeddingBagConfig{.num_embeddings = request.at("rows"),
                                   .embedding_dim = request.at("width"),
                                   .mode = bag_mode(request),
                                   .padding_idx = request.at("padding").get<std::int64_t>()}),
        out(this, "out", {.in = request.at("width"), .out = 1}) {}
  nn::Child<nn::EmbeddingBag> bag;
  nn::Child<nn::Linear> out;

  plan::Traced trace(const plan::Inputs& in) const {
    const Value y = out(bag(in["ids"]));
    in.graph().observe("output", y);
    return {.loss = mean_squared_error(y, in["target"]), .prediction = y};
  }
};

}  // namespace lockstep::parity
