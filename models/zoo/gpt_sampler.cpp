#include "models/zoo/gpt_sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::models {
namespace {

constexpr std::string_view kGptSamplerSite = "generate";

std::string cache_name(std::size_t i) { return formatted("{}{}", i % 2 == 0 ? "k" : "v", i / 2); }

std::string observed_name(std::size_t i) {
  return formatted("transformer.h.{}.attn.{}", i / 2, i % 2 == 0 ? "k" : "v");
}

Tensor indices(std::span<const std::int32_t> tokens, Shape shape) {
  Tensor tensor(std::move(shape), DType::I32);
  std::ranges::copy(tokens, tensor.data<std::int32_t>().begin());
  return tensor;
}

}  // namespace

void check_sampling(const SamplingOptions& o) {
  check(o.temperature >= 0 && o.temperature <= 1e6, kGptSamplerSite,
        "temperature is {}, expected a number from 0 (always the likeliest token) to 1e6", o.temperature);
  check(o.top_k >= 0, kGptSamplerSite, "top-k is {}, expected a number of tokens, or 0 for all", o.top_k);
  check(o.top_p > 0 && o.top_p <= 1, kGptSamplerSite, "top-p is {}, expected a probability above 0 and at most 1",
        o.top_p);
}

std::int32_t sample_token(std::span<const float> logits, const SamplingOptions& o, double uniform) {
  check_sampling(o);
  for (std::size_t i = 0; i < logits.size(); ++i)
    check(std::isfinite(logits[i]), kGptSamplerSite, "the logit of token {} is {}, expected a finite number", i,
          logits[i]);
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t token) { return static_cast<double>(logits[static_cast<std::size_t>(token)]); };
  std::ranges::stable_sort(order, std::greater<>(), logit);
  if (o.temperature == 0) return order[0];
  if (o.top_k > 0 && o.top_k < std::ssize(order)) order.resize(static_cast<std::size_t>(o.top_k));
  std::vector<double> mass;  // of each token and those in front of it
  double sum = 0;
  for (const std::int32_t token : order)
    mass.push_back(sum += math::exp((logit(token) - logit(order[0])) / o.temperature));
  const auto nucleus = std::ranges::lower_bound(mass, o.top_p * sum);
  const auto last = std::min<std::ptrdiff_t>(nucleus - mass.begin(), std::ssize(mass) - 1);
  const double aim = uniform * mass[static_cast<std::size_t>(last)];
  const auto chosen = std::ranges::upper_bound(mass.begin(), mass.begin() + last, aim);
  return order[static_cast<std::size_t>(chosen - mass.begin())];
}

GptSampler::GptSampler(const Gpt& network)
    : network_(network),
      predictor_(network, [this](const plan::Inputs& in) { return trace(in); }, {.input = "tokens", .batch = 1}) {
  const GptConfig& c = network.config();
  const std::int64_t heads = c.key_heads > 0 ? c.key_heads : c.heads;
  for (std::int64_t i = 0; i < 2 * c.layers; ++i) {
    caches_.emplace_back(Shape{1, c.context, heads, c.width / c.heads}, DType::F32);
    std::memset(caches_.back().raw(), 0, caches_.back().bytes());
  }
}

Value GptSampler::trace(const plan::Inputs& in) const {
  GptPast past{.offset = in["offset"], .positions = in["positions"], .layers = {}};
  for (std::size_t i = 0; i < caches_.size(); i += 2) past.layers.push_back({in[cache_name(i)], in[cache_name(i + 1)]});
  return network_.next_logits(in["tokens"], past);
}

// Reads tokens behind those that the caches hold, and puts their keys and values into the caches.
std::span<const float> GptSampler::read(std::span<const std::int32_t> tokens) {
  const auto count = std::ssize(tokens), before = std::ssize(tokens_);
  std::vector<std::int32_t> positions(tokens.size());
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(before));
  const Tensor read = indices(tokens, {1, count}), offset = indices(std::span(positions).first(1), {1}),
               places = indices(positions, {1, count});
  std::vector<std::string> names;
  for (std::size_t i = 0; i < caches_.size(); ++i) names.push_back(cache_name(i));
  std::vector<infer::Predictor::Input> inputs{{"tokens", read}, {"offset", offset}, {"positions", places}};
  for (std::size_t i = 0; i < caches_.size(); ++i) inputs.push_back({names[i], caches_[i]});
  logits_ = predictor_.predict(inputs);
  for (std::size_t i = 0; i < caches_.size(); ++i) {
    const Tensor made = predictor_.observed(observed_name(i));
    const std::size_t row = made.bytes() / tokens.size();
    std::memcpy(caches_[i].raw() + static_cast<std::size_t>(before) * row, made.raw(), made.bytes());
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  return logits_.data<float>();
}

std::span<const float> GptSampler::start(std::span<const std::int32_t> tokens) {
  check(!tokens.empty(), kGptSamplerSite, "there are no tokens to start from, expected at least one");
  const auto most = static_cast<std::size_t>(network_.config().context);
  tokens_.clear();
  return read(tokens.last(std::min(tokens.size(), most)));
}

std::span<const float> GptSampler::next(std::int32_t token) {
  check(!tokens_.empty(), kGptSamplerSite, "next() is called before start()");
  const auto position = std::ssize(tokens_);
  if (position < network_.config().context) return read({&token, 1});
  std::vector<std::int32_t> half(tokens_.begin() + (position + 1) / 2, tokens_.end());
  half.push_back(token);
  return start(half);
}

}  // namespace lockstep::models
