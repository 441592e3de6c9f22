#include "models/zoo/unet.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/pool.h"

namespace lockstep::models {

template <int Axes>
UNet<Axes>::UNet(const UNetConfig& c) : config_(c), head_(this, "head", {.in = c.width, .out = c.out, .kernel = 1}) {
  check(c.in > 0 && c.out > 0 && c.width > 0 && c.levels >= 0 && c.levels <= 10, "unet",
        "{} input and {} output channels, width {}, {} levels: expected at least 1 each, and 0 to 10 levels", c.in,
        c.out, c.width, c.levels);
  std::int64_t channels = c.width;
  down_.push_back(std::make_unique<nn::Child<DoubleConv<Axes>>>(this, "down0", c.in, channels));
  for (std::int64_t level = 1; level <= c.levels; ++level, channels *= 2) {
    down_.push_back(
        std::make_unique<nn::Child<DoubleConv<Axes>>>(this, formatted("down{}", level), channels, 2 * channels));
  }
  for (std::int64_t level = c.levels; level > 0; --level, channels /= 2) {
    const nn::ConvTransposeConfig<Axes> grow{.in = channels, .out = channels / 2, .kernel = 2, .stride = 2};
    grow_.push_back(std::make_unique<nn::Child<nn::ConvTranspose<Axes>>>(this, formatted("grow{}", level - 1), grow));
    up_.push_back(
        std::make_unique<nn::Child<DoubleConv<Axes>>>(this, formatted("up{}", level - 1), channels, channels / 2));
  }
}

template <int Axes>
Value UNet<Axes>::operator()(Value input) const {
  check(halvings(input.shape().tail().tail(), config_.levels) == config_.levels, "unet",
        "a sample is {}, and {} levels need sizes that {} divides; expected such sizes, or fewer levels",
        input.shape().tail().str(), config_.levels, std::int64_t{1} << config_.levels);
  std::vector<Value> levels;
  Value x = (*down_[0])(input);
  for (std::size_t i = 1; i < down_.size(); ++i) {
    levels.push_back(x);
    x = (*down_[i])(pool(Pool::Max, x, {.axes = std::vector<PoolAxis>(Axes)}));
  }
  for (std::size_t i = 0; i < up_.size(); ++i) {
    x = (*up_[i])(concat({levels.back(), (*grow_[i])(x)}, 1));
    levels.pop_back();
  }
  return head_(x);
}

template class UNet<1>;
template class UNet<2>;
template class UNet<3>;

FieldModelEntry unet_entry() {
  return {.name = "unet",
          .description =
              "fields to fields by a U-Net, 1-D to 3-D, for sizes that 2^depth divides; width 32, depth as often as "
              "sizes can be halved, up to 4",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            const int axes = spatial_axes("unet", c);
            UNetConfig config{.in = c.input[0], .out = c.output[0]};
            if (c.width > 0) config.width = c.width;
            config.levels = c.depth > 0 ? c.depth : halvings(c.input.tail(), config.levels);
            return with_axes(
                axes, [&](auto n) -> std::unique_ptr<FieldModel> { return std::make_unique<UNet<n()>>(config); });
          }};
}

}  // namespace lockstep::models
