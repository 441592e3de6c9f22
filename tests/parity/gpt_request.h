// The configuration of a GPT in a request of rows_gpt.py.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "models/zoo/gpt.h"

namespace lockstep::parity {

inline models::GptConfig gpt_config(const nlohmann::json& o) {
  models::GptConfig c{.vocabulary = o.at("vocabulary"),
                      .context = o.at("context"),
                      .layers = o.at("layers"),
                      .heads = o.at("heads"),
                      .width = o.at("width"),
                      .key_heads = o.value("key_heads", std::int64_t{0})};
  const std::string positions = o.value("positions", "learned");
  if (positions == "rotary") c.positions = models::GptPositions::Rotary;
  if (positions == "alibi") c.positions = models::GptPositions::Alibi;
  if (o.value("norm", "layer") == "rms") c.norm = models::GptNorm::Rms;
  if (o.value("mlp", "gelu") == "swiglu") c.mlp = models::GptMlp::SwiGlu;
  c.bias = !o.value("no_bias", false);
  c.tied = !o.value("untied", false);
  return c;
}

}  // namespace lockstep::parity
