// Text from a GPT, token by token: keys and values of earlier tokens are kept (a cache), so that a token costs the same
// wherever it stands, not a pass over all tokens before it. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "lockstep/infer/predictor.h"
#include "models/zoo/gpt.h"

namespace lockstep::models {

struct SamplingOptions {
  double temperature = 1;  // divides the logits; 0: the token with the largest logit
  std::int64_t top_k = 0;  // only the k most likely tokens; 0: all
  double top_p = 1;        // only the most likely tokens that together have this probability (Holtzman et al., 2020)
};

// Throws Error for options out of range.
void check_sampling(const SamplingOptions& options);
// Returns the token that the number `uniform` of [0, 1) chooses from the probabilities that these logits give. Of equal
// logits the first one counts as more likely. A pure function with the same result everywhere. Throws Error for options
// out of range and for logits that are not finite.
std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& options, double uniform);

class GptSampler {
 public:
  // `network` must outlive this object. Its weights are initial ones until load().
  explicit GptSampler(const Gpt& network);
  void load(const std::filesystem::path& file) { predictor_.load(file); }
  infer::Predictor& predictor() { return predictor_; }

  // Reads a text from its start, at least one token; returns the logits of the next token, valid until the next call.
  // Of a text longer than the context only the last tokens are read.
  std::span<const float> start(std::span<const std::int32_t> tokens);
  // Reads one more token and returns the logits of the next one. Where the context is full, the second half of it is
  // read again as a start.
  std::span<const float> next(std::int32_t token);

 private:
  Value trace(const plan::Inputs& in) const;
  std::span<const float> read(std::span<const std::int32_t> tokens);

  const Gpt& network_;
  infer::Predictor predictor_;
  std::vector<std::int32_t> tokens_;  // that the caches hold
  std::vector<Tensor> caches_;        // keys and values of each layer, (1, context, G, D)
  Tensor logits_;
};

}  // namespace lockstep::models
