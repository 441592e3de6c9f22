#include "models/zoo/series_encoder.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/series.h"

namespace lockstep::models {
namespace {

const SeriesEncoderConfig& checked(const SeriesEncoderConfig& c) {
  check(c.width >= 1 && c.depth >= 1 && c.patch >= 0, "encoder",
        "width {}, {} blocks, patches of {} steps: expected at least 1, 1 and 0", c.width, c.depth, c.patch);
  return c;
}

std::int64_t patch_of(const SeriesEncoderConfig& c) {
  constexpr std::int64_t kUsual = 4, kLeastTokens = 4;
  if (c.patch > 0) return c.patch;
  return c.input[0] >= kUsual * kLeastTokens ? kUsual : 1;
}

}  // namespace

SeriesEncoder::SeriesEncoder(const SeriesEncoderConfig& c)
    : series_(series_shape("encoder", checked(c).input)),
      output_(c.output),
      patch_(patch_of(c)),
      tokens_((series_[0] + patch_ - 1) / patch_),
      dropout_(c.dropout),
      position_(add("position", {.shape = {tokens_, c.width}, .initialize = nn::normal(0, 0.02), .role = Role::Bias})),
      embed_(this, "embed", {.in = patch_ * series_[1], .out = c.width}),
      blocks_(blocks(c)),
      norm_(this, "norm", {.shape = {c.width}}),
      head_(this, "head", {.in = tokens_ * c.width, .out = c.output.elements()}) {}

SeriesEncoder::Blocks SeriesEncoder::blocks(const SeriesEncoderConfig& c) {
  constexpr std::int64_t kHeadWidth = 16;
  Blocks all;
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const EncoderBlockConfig block{.width = c.width,
                                   .heads = c.width % kHeadWidth == 0 ? c.width / kHeadWidth : 1,
                                   .hidden = 4 * c.width,
                                   .dropout = c.dropout,
                                   .epsilon = 1e-5};
    all.push_back(std::make_unique<nn::Child<EncoderBlock>>(this, formatted("block{}", i), block));
  }
  return all;
}

Value SeriesEncoder::operator()(Value input) const {
  const std::int64_t samples = input.shape()[0], missing = tokens_ * patch_ - series_[0];
  Value x = reshape(input, series_.batched(samples));
  if (missing > 0) x = pad(x, {0, 0, missing, 0});
  x = embed_(reshape(x, {samples, tokens_, patch_ * series_[1]}));
  x = dropout(x + input.graph().parameter(position_), dropout_, "embed");
  for (const auto& block : blocks_) x = (*block)(x);
  return reshape(head_(flatten(norm_(x))), output_.batched(samples));
}

FieldModelEntry encoder_entry() {
  return {.name = "encoder",
          .description =
              "series (time, features) to next values by a Transformer encoder of patches of 4 steps; width 64, "
              "depth 2 blocks",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            SeriesEncoderConfig config{.input = c.input, .output = c.output, .dropout = c.dropout};
            if (c.width > 0) config.width = c.width;
            if (c.depth > 0) config.depth = c.depth;
            return std::make_unique<SeriesEncoder>(config);
          },
          .needs_series = true,
          .reads = {"dropout"}};
}

}  // namespace lockstep::models
