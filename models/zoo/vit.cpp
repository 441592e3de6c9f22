#include "models/zoo/vit.h"

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/ops/dropout.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"
#include "models/zoo/encoder_block.h"

namespace lockstep::models {
namespace {

const VitConfig& checked(const VitConfig& c) {
  check(c.image.rank() == 3 && c.patch >= 1 && c.image[1] >= c.patch && c.image[2] >= c.patch &&
            c.image[1] % c.patch == 0 && c.image[2] % c.patch == 0,
        "vit", "images are {}, expected (channels, height, width) with sides that patches of {} pixels divide",
        c.image.str(), c.patch);
  check(c.layers >= 1 && c.classes >= 1, "vit", "{} layers and {} classes, expected at least 1 of each", c.layers,
        c.classes);
  return c;
}

std::int64_t patches(const VitConfig& c) { return c.image[1] / c.patch * (c.image[2] / c.patch); }

nn::Conv2dConfig patch_config(const VitConfig& c) {
  const double fan_in = static_cast<double>(c.image[0] * c.patch * c.patch);
  return {.in = c.image[0],
          .out = c.width,
          .kernel = c.patch,
          .stride = c.patch,
          .weight_init = nn::normal(0, std::sqrt(1 / fan_in)),
          .bias_init = nn::constant(0)};
}

}  // namespace

VitConfig vit_config(std::string_view size) {
  if (size == "ti") return {.width = 192, .heads = 3};
  if (size == "s") return {.width = 384, .heads = 6};
  check(size == "b", "vit", "there is no size {}; sizes: ti, s, b", size);
  return {};
}

class Vit::Encoder : public nn::Module {
 public:
  explicit Encoder(const VitConfig& c)
      : dropout_(c.dropout),
        position_(add("pos_embedding",
                      {.shape = {1, patches(c) + 1, c.width}, .initialize = nn::normal(0, 0.02), .role = Role::Bias})),
        layers_(this, "layers") {
    for (std::int64_t i = 0; i < c.layers; ++i) {
      const double depth = static_cast<double>(i) / static_cast<double>(std::max<std::int64_t>(1, c.layers - 1));
      const EncoderBlockConfig block{.width = c.width,
                                     .heads = c.heads,
                                     .hidden = c.hidden > 0 ? c.hidden : 4 * c.width,
                                     .dropout = c.dropout,
                                     .stochastic_depth = c.stochastic_depth * depth};
      blocks_.push_back(std::make_unique<nn::Child<EncoderBlock>>(&layers_, formatted("encoder_layer_{}", i), block));
    }
    ln_ = std::make_unique<nn::Child<nn::LayerNorm>>(this, "ln",
                                                     nn::LayerNormConfig{.shape = {c.width}, .epsilon = 1e-6});
  }

  // Tokens of patches (N, S, E) and the class token (1, 1, E) -> (N, S + 1, E).
  Value operator()(Value tokens, Value first) const {
    const Shape& shape = tokens.shape();
    const std::int64_t n = shape[0], size = shape[1], width = shape[2];
    const Value in_front = place(first, {1, size + 1, width}, {{0, 1}, {0, 1}, {0, width}});
    const Value behind = place(tokens, {n, size + 1, width}, {{0, n}, {1, size}, {0, width}});
    Value x = behind + (in_front + tokens.graph().parameter(position_));
    x = dropout(x, dropout_, path());
    for (const auto& block : blocks_) x = (*block)(x);
    return (*ln_)(x);
  }

 private:
  double dropout_;
  Parameter& position_;
  nn::Child<nn::Module> layers_;
  std::vector<std::unique_ptr<nn::Child<EncoderBlock>>> blocks_;
  std::unique_ptr<nn::Child<nn::LayerNorm>> ln_;
};

class Vit::Heads : public nn::Module {
 public:
  explicit Heads(const VitConfig& c)
      : head_(this, "head",
              {.in = c.width, .out = c.classes, .weight_init = nn::normal(0, 0.02), .bias_init = nn::constant(0)}) {}
  Value operator()(Value x) const { return head_(x); }

 private:
  nn::Child<nn::Linear> head_;
};

Vit::Vit(const VitConfig& c)
    : config_(checked(c)),
      class_token_(add("class_token", {.shape = {1, 1, c.width}, .initialize = nn::constant(0), .role = Role::Bias})),
      conv_proj_(this, "conv_proj", patch_config(c)),
      encoder_(std::make_unique<nn::Child<Encoder>>(this, "encoder", c)),
      heads_(std::make_unique<nn::Child<Heads>>(this, "heads", c)) {}

Vit::~Vit() = default;

Value Vit::operator()(Value images) const {
  const Shape expected = config_.image.batched(images.shape()[0]);
  check(images.shape() == expected, "vit", "images are {}, expected {}", images.shape().str(), expected.str());
  const Value tokens = transpose(flatten(conv_proj_(images), 2), 1, 2);  // (N, E, h, w) -> (N, h w, E)
  const Value x = (*encoder_)(tokens, images.graph().parameter(class_token_));
  return (*heads_)(select(x, 1, 0));
}

namespace {

ModelEntry entry(std::string name, std::string description, const VitConfig& config) {
  return {.name = std::move(name),
          .description = std::move(description),
          .image = config.image,
          .classes = config.classes,
          .build = [config](std::int64_t classes, const Shape& image) {
            VitConfig chosen = config;
            chosen.classes = classes;
            chosen.image = image;
            return std::make_unique<Vit>(chosen);
          }};
}

}  // namespace

std::vector<ModelEntry> vit_entries() {
  constexpr double kDeitDepth = 0.1;  // Touvron et al., "Training data-efficient image transformers", 2021, table 9
  std::vector<ModelEntry> entries;
  for (const char* size : {"ti", "s", "b"}) {
    entries.push_back(entry(formatted("vit_{}_16", size),
                            formatted("ViT-{} with patches of 16 pixels; names as torchvision's vit_b_16", size),
                            vit_config(size)));
  }
  for (const char* size : {"ti", "s"}) {
    VitConfig config = vit_config(size);
    config.stochastic_depth = kDeitDepth;
    entries.push_back(entry(formatted("deit_{}_16", size),
                            formatted("vit_{}_16 with stochastic depth 0.1, as DeiT is trained", size), config));
    config.image = {3, 32, 32};
    config.classes = 10;
    config.patch = 4;
    entries.push_back(
        entry(formatted("vit_{}_cifar", size),
              formatted("ViT-{} with patches of 4 pixels and stochastic depth 0.1, for 32x32 images", size), config));
  }
  const VitConfig mini{.image = {3, 32, 32}, .classes = 10, .patch = 4, .width = 96, .layers = 4, .heads = 3};
  entries.push_back(entry("vit_mini_cifar",
                          "ViT of 4 blocks, 96 wide, with 3 heads and patches of 4 pixels, for 32x32 images", mini));
  return entries;
}

}  // namespace lockstep::models
