#include "models/zoo/resnet.h"

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/same_conv.h"

namespace lockstep::models {
namespace {

using Config = ResNetConfig;

nn::BatchNorm2dConfig norm(std::int64_t channels, bool zero = false) {
  return {.channels = channels, .initial_scale = zero ? 0.0 : 1.0};
}

struct BlockConfig {
  std::int64_t in, channels, stride;
  bool zero_residual;
  std::int64_t groups, width_per_group;
};

// The identity if it is empty.
void project(nn::Sequential& downsample, std::int64_t in, std::int64_t out, std::int64_t stride) {
  downsample.append<nn::Conv2d>(same_conv(in, out, 1, stride)).append<nn::BatchNorm2d>(norm(out));
}

class BasicBlock : public nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 1;

  explicit BasicBlock(const BlockConfig& config) : c_(config) {
    if (c_.stride != 1 || c_.in != c_.channels) project(downsample_, c_.in, c_.channels, c_.stride);
  }

  Value operator()(Value x) const {  // (N, in, H, W) -> (N, channels, H/stride, W/stride)
    const auto in_block = block(x);
    Value y = relu(bn1_(conv1_(x)));
    y = bn2_(conv2_(y));
    return relu(y + downsample_(x));
  }

 private:
  BlockConfig c_;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", same_conv(c_.in, c_.channels, 3, c_.stride)};
  nn::Child<nn::BatchNorm2d> bn1_{this, "bn1", norm(c_.channels)};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", same_conv(c_.channels, c_.channels, 3)};
  nn::Child<nn::BatchNorm2d> bn2_{this, "bn2", norm(c_.channels, c_.zero_residual)};
  nn::Child<nn::Sequential> downsample_{this, "downsample"};
};

class Bottleneck : public nn::Module {
 public:
  static constexpr std::int64_t kExpansion = 4;

  explicit Bottleneck(const BlockConfig& config) : c_(config) {
    if (c_.stride != 1 || c_.in != out_) project(downsample_, c_.in, out_, c_.stride);
  }

  Value operator()(Value x) const {  // (N, in, H, W) -> (N, 4 channels, H/stride, W/stride)
    const auto in_block = block(x);
    Value y = relu(bn1_(conv1_(x)));
    y = relu(bn2_(conv2_(y)));
    y = bn3_(conv3_(y));
    return relu(y + downsample_(x));
  }

 private:
  BlockConfig c_;
  std::int64_t out_ = kExpansion * c_.channels;
  std::int64_t width_ = c_.channels * c_.width_per_group / 64 * c_.groups;
  nn::Child<nn::Conv2d> conv1_{this, "conv1", same_conv(c_.in, width_, 1)};
  nn::Child<nn::BatchNorm2d> bn1_{this, "bn1", norm(width_)};
  nn::Child<nn::Conv2d> conv2_{this, "conv2", same_conv(width_, width_, 3, c_.stride, c_.groups)};
  nn::Child<nn::BatchNorm2d> bn2_{this, "bn2", norm(width_)};
  nn::Child<nn::Conv2d> conv3_{this, "conv3", same_conv(width_, out_, 1)};
  nn::Child<nn::BatchNorm2d> bn3_{this, "bn3", norm(out_, c_.zero_residual)};
  nn::Child<nn::Sequential> downsample_{this, "downsample"};
};

template <class Block>
void append_blocks(nn::Sequential& stage, std::int64_t blocks, BlockConfig first) {
  stage.append<Block>(first);
  BlockConfig next = first;
  next.in = Block::kExpansion * first.channels;
  next.stride = 1;
  for (std::int64_t i = 1; i < blocks; ++i) stage.append<Block>(next);
}

std::int64_t expansion(Config::Block block) {
  return block == Config::Block::Basic ? BasicBlock::kExpansion : Bottleneck::kExpansion;
}

std::int64_t stage_channels(const Config& c, std::size_t stage) { return c.width << stage; }

const Config& checked(const Config& c) {
  check(!c.blocks.empty() && c.blocks.size() <= 16, "resnet", "{} stages, expected 1 to 16", c.blocks.size());
  for (const std::int64_t n : c.blocks) check(n > 0, "resnet", "a stage of {} blocks, expected at least 1", n);
  check(c.width > 0 && c.in_channels > 0 && c.classes > 0, "resnet",
        "width {}, input channels {}, classes {}: all must be positive", c.width, c.in_channels, c.classes);
  check(c.groups > 0 && c.width * c.width_per_group / 64 > 0, "resnet",
        "{} groups of width {} per 64 channels, expected at least one channel in each of {} channels", c.groups,
        c.width_per_group, c.width);
  check(c.block == Config::Block::Bottleneck || (c.groups == 1 && c.width_per_group == 64), "resnet",
        "{} groups of width {}: basic blocks have 1 of width 64, only bottlenecks have others", c.groups,
        c.width_per_group);
  return c;
}

}  // namespace

ResNet::ResNet(const Config& config) : c_(checked(config)) {}

nn::Conv2dConfig ResNet::stem() const {
  return c_.stem == Config::Stem::ImageNet ? same_conv(c_.in_channels, c_.width, 7, 2)
                                           : same_conv(c_.in_channels, c_.width, 3);
}

std::int64_t ResNet::features() const { return expansion(c_.block) * stage_channels(c_, c_.blocks.size() - 1); }

std::vector<std::unique_ptr<ResNet::Stage>> ResNet::stages() {
  std::vector<std::unique_ptr<Stage>> all;
  std::int64_t in = c_.width;
  for (std::size_t i = 0; i < c_.blocks.size(); ++i) {
    Stage& stage = *all.emplace_back(std::make_unique<Stage>(this, "layer" + std::to_string(i + 1)));
    const BlockConfig first{.in = in,
                            .channels = stage_channels(c_, i),
                            .stride = i == 0 ? 1 : 2,
                            .zero_residual = c_.zero_residual,
                            .groups = c_.groups,
                            .width_per_group = c_.width_per_group};
    if (c_.block == Config::Block::Basic) {
      append_blocks<BasicBlock>(stage, c_.blocks[i], first);
    } else {
      append_blocks<Bottleneck>(stage, c_.blocks[i], first);
    }
    in = expansion(c_.block) * first.channels;
  }
  return all;
}

Value ResNet::operator()(Value images) const {
  Value x = relu(bn1_(conv1_(images)));
  if (c_.stem == Config::Stem::ImageNet) x = nn::max_pool(x, {.kernel = 3, .stride = 2, .padding = 1});
  for (const auto& stage : stages_) x = (*stage)(x);
  return fc_(flatten(global_average_pool2d(x)));  // (N, C, H, W) -> (N, C) -> (N, classes)
}

Config resnet_config(int depth, std::optional<Config::Stem> wanted) {
  using enum Config::Block;
  const Config::Stem stem = wanted.value_or(Config::Stem::ImageNet);
  switch (depth) {
    case 18:
      return {.block = Basic, .blocks = {2, 2, 2, 2}, .stem = stem};
    case 34:
      return {.block = Basic, .blocks = {3, 4, 6, 3}, .stem = stem};
    case 50:
      return {.block = Bottleneck, .blocks = {3, 4, 6, 3}, .stem = stem};
    case 101:
      return {.block = Bottleneck, .blocks = {3, 4, 23, 3}, .stem = stem};
    case 152:
      return {.block = Bottleneck, .blocks = {3, 8, 36, 3}, .stem = stem};
    case 20:
    case 32:
    case 44:
    case 56:
    case 110: {
      check(wanted != Config::Stem::ImageNet, "resnet",
            "depth {} is for small images and always has the cifar stem, the imagenet stem was asked for; depths with "
            "either: 18, 34, 50, 101, 152",
            depth);
      const std::int64_t n = (depth - 2) / 6;
      return {.block = Basic, .blocks = {n, n, n}, .width = 16, .stem = Config::Stem::Cifar, .classes = 10};
    }
    default:
      fail("resnet",
           "there is no depth {}; depths: 18, 34, 50, 101, 152 as in torchvision, 20, 32, 44, 56, 110 for CIFAR",
           depth);
  }
}

}  // namespace lockstep::models
