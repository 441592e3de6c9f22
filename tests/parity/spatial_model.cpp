#include "tests/parity/spatial_model.h"

#include <algorithm>
#include <array>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ops/conv_transpose.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/resample.h"

namespace lockstep::parity {
namespace {

using Numbers = std::vector<std::int64_t>;

// The option's number for each axis, or `otherwise`.
Numbers numbers(const nlohmann::json& request, const char* name, std::size_t axes, std::int64_t otherwise) {
  return request.value(name, Numbers(axes, otherwise));
}

ConvolutionOptions convolution_options(const nlohmann::json& request, std::size_t axes, bool padded) {
  const Numbers stride = numbers(request, "stride", axes, 1), padding = numbers(request, "padding", axes, 0);
  const Numbers dilation = numbers(request, "dilation", axes, 1);
  ConvolutionOptions o{.groups = request.value("groups", std::int64_t{1})};
  for (std::size_t i = 0; i < axes; ++i) o.axes.push_back({stride[i], padded ? 0 : padding[i], dilation[i]});
  return o;
}

PoolOptions pool_options(const nlohmann::json& request, std::size_t axes) {
  const Numbers kernel = numbers(request, "kernel", axes, 2), stride = numbers(request, "stride", axes, 2);
  const Numbers padding = numbers(request, "padding", axes, 0), dilation = numbers(request, "dilation", axes, 1);
  PoolOptions o{.ceil_mode = request.value("ceil_mode", false),
                .count_include_pad = request.value("count_include_pad", true)};
  for (std::size_t i = 0; i < axes; ++i) o.axes.push_back({kernel[i], stride[i], padding[i], dilation[i]});
  return o;
}

PaddingMode padding_mode(const std::string& name) {
  if (name == "reflect") return PaddingMode::Reflect;
  if (name == "replicate") return PaddingMode::Replicate;
  return name == "circular" ? PaddingMode::Circular : PaddingMode::Zeros;
}

constexpr std::array kOps{"convolution",  "conv_transpose",        "max_pool",
                          "average_pool", "adaptive_average_pool", "upsample"};

}  // namespace

bool is_spatial(const nlohmann::json& request) {
  return std::ranges::find(kOps, request.at("op").get<std::string>()) != kOps.end();
}

Value apply_spatial(const nlohmann::json& request, Value x, Value weight, Value bias) {
  const std::string op = request.at("op");
  const auto axes = static_cast<std::size_t>(x.shape().rank() - 2);
  if (op == "convolution") {
    const std::string mode = request.value("padding_mode", "zeros");
    const bool padded = mode != "zeros";
    if (padded) x = pad_spatial(x, numbers(request, "padding", axes, 0), padding_mode(mode));
    return convolution(x, weight, bias, convolution_options(request, axes, padded));
  }
  if (op == "conv_transpose") {
    return conv_transpose(x, weight, bias,
                          {.convolution = convolution_options(request, axes, false),
                           .output_padding = request.value("output_padding", Numbers{})});
  }
  if (op == "adaptive_average_pool") return adaptive_average_pool(x, request.at("size").get<Numbers>());
  if (op == "upsample") {
    return upsample(
        x, {.size = request.value("size", Numbers{}),
            .scale = request.value("scale", std::vector<double>{}),
            .mode = request.value("mode", "nearest") == "nearest" ? Interpolation::Nearest : Interpolation::Linear,
            .align_corners = request.value("align_corners", false)});
  }
  return pool(op == "max_pool" ? Pool::Max : Pool::Average, x, pool_options(request, axes));
}

}  // namespace lockstep::parity
