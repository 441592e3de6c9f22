#include "models/zoo/vgg.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/nn/layers.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

const Shape& checked(const VggConfig& c) {
  const std::int64_t least = std::int64_t{1} << c.convolutions.size();  // each stage halves the sides
  check(c.image.rank() == 3 && c.image[1] >= least && c.image[2] >= least, "vgg",
        "images are {}, expected (channels, height, width) of at least {}x{}", c.image.str(), least, least);
  return c.image;
}

}  // namespace

VggConfig vgg_config(int depth, bool norms) {
  VggConfig config{.norms = norms};
  switch (depth) {
    case 11:
      config.convolutions = {1, 1, 2, 2, 2};
      break;
    case 13:
      config.convolutions = {2, 2, 2, 2, 2};
      break;
    case 16:
      config.convolutions = {2, 2, 3, 3, 3};
      break;
    case 19:
      config.convolutions = {2, 2, 4, 4, 4};
      break;
    default:
      fail("vgg", "there is no depth {}; depths: 11, 13, 16, 19", depth);
  }
  return config;
}

Vgg::Vgg(const VggConfig& c) {
  constexpr std::int64_t kFirst = 64, kWidest = 512, kHidden = 4096;
  std::int64_t in = checked(c)[0], out = kFirst;
  for (const int convolutions : c.convolutions) {
    for (int i = 0; i < convolutions; ++i) {
      features_.append<nn::Conv2d>(nn::Conv2dConfig{.in = in,
                                                    .out = out,
                                                    .kernel = 3,
                                                    .padding = 1,
                                                    .weight_init = nn::kaiming_normal(nn::Fan::Out),
                                                    .bias_init = nn::constant(0)});
      if (c.norms) features_.append<nn::BatchNorm2d>(nn::BatchNorm2dConfig{.channels = out});
      features_.append(relu);
      in = out;
    }
    features_.append([](Value x) { return nn::max_pool(x, {.kernel = 2}); });
    out = std::min(2 * out, kWidest);
  }
  const auto linear = [&](std::int64_t inputs, std::int64_t outputs) {
    classifier_.append<nn::Linear>(nn::LinearConfig{
        .in = inputs, .out = outputs, .weight_init = nn::normal(0, 0.01), .bias_init = nn::constant(0)});
  };
  const auto sides = static_cast<int>(c.convolutions.size());
  linear(in * (c.image[1] >> sides) * (c.image[2] >> sides), kHidden);
  classifier_.append(relu).append<nn::Dropout>(c.dropout);
  linear(kHidden, kHidden);
  classifier_.append(relu).append<nn::Dropout>(c.dropout);
  linear(kHidden, c.classes);
}

Value Vgg::operator()(Value images) const { return classifier_(flatten(features_(images))); }

std::vector<ModelEntry> vgg_entries() {
  std::vector<ModelEntry> entries;
  for (const int depth : {11, 13, 16, 19}) {
    for (const bool norms : {false, true}) {
      entries.push_back({.name = formatted("vgg{}{}", depth, norms ? "_bn" : ""),
                         .description = formatted("torchvision's VGG-{}{}", depth, norms ? " with batch norm" : ""),
                         .image = {3, 224, 224},
                         .classes = 1000,
                         .build = [depth, norms](std::int64_t classes, const Shape& image) {
                           VggConfig config = vgg_config(depth, norms);
                           config.image = image;
                           config.classes = classes;
                           return std::make_unique<Vgg>(config);
                         }});
    }
  }
  return entries;
}

}  // namespace lockstep::models
