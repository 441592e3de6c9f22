#include "models/zoo/cosmoflow.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/pool.h"
#include "lockstep/ops/reshape.h"
#include "models/zoo/spatial.h"

namespace lockstep::models {
namespace {

constexpr std::int64_t kDense1 = 128, kDense2 = 64;

// The size of an axis after a convolution and a pool.
std::int64_t next_size(std::int64_t size, std::int64_t kernel) { return (size + 3 - kernel) / 2; }

// Elements of a sample behind the convolutions.
std::int64_t features(const CosmoFlowConfig& c) {
  check(c.width >= 1 && c.levels >= 1 && c.levels <= 10 && (c.kernel == 2 || c.kernel == 3), "cosmoflow",
        "width {}, {} levels, kernel {}: expected at least 1, 1 to 10, and 2 or 3", c.width, c.levels, c.kernel);
  check(c.negative_slope >= 0, "cosmoflow", "the negative slope is {}, expected at least 0", c.negative_slope);
  std::int64_t elements = c.width << (c.levels - 1);
  for (int i = 1; i < c.input.rank(); ++i) {
    std::int64_t size = c.input[i];
    for (std::int64_t level = 0; level < c.levels; ++level) size = next_size(size, c.kernel);
    check(size >= 1, "cosmoflow", "a sample's input is {}, and {} levels leave nothing of it; expected fewer levels",
          c.input.str(), c.levels);
    elements *= size;
  }
  return elements;
}

nn::LinearConfig linear(std::int64_t in, std::int64_t out) {
  return {.in = in, .out = out, .weight_init = nn::xavier_uniform(), .bias_init = nn::constant(0)};
}

}  // namespace

template <int Axes>
CosmoFlow<Axes>::CosmoFlow(const CosmoFlowConfig& c)
    : config_(c),
      dense1_(this, "dense1", linear(features(c), kDense1)),
      dense2_(this, "dense2", linear(kDense1, kDense2)),
      output_(this, "output", linear(kDense2, c.output.elements())),
      dropout1_(this, "dropout1", c.dropout),
      dropout2_(this, "dropout2", c.dropout) {}

template <int Axes>
typename CosmoFlow<Axes>::Convolutions CosmoFlow<Axes>::convolutions() {
  Convolutions all;
  std::int64_t in = config_.input[0];
  for (std::int64_t level = 0; level < config_.levels; ++level) {
    const nn::ConvConfig<Axes> convolution{.in = in,
                                           .out = config_.width << level,
                                           .kernel = config_.kernel,
                                           .padding = 1,
                                           .weight_init = nn::xavier_uniform(),
                                           .bias_init = nn::constant(0)};
    all.push_back(std::make_unique<nn::Child<nn::Conv<Axes>>>(this, formatted("conv{}", level), convolution));
    in = convolution.out;
  }
  return all;
}

template <int Axes>
Value CosmoFlow<Axes>::operator()(Value input) const {
  const auto active = [this](Value x) { return leaky_relu(x, config_.negative_slope); };
  Value x = input;
  // Leaky ReLU never falls, so it may follow the maximum: the same values, worked out for one element of a window.
  for (const auto& convolution : convolutions_) {
    x = active(pool(Pool::Max, (*convolution)(x), {.axes = std::vector<PoolAxis>(Axes)}));
  }
  x = dropout1_(active(dense1_(flatten(x))));
  x = output_(dropout2_(active(dense2_(x))));
  if (config_.bounded) x = 1.2 * sigmoid(x);
  return reshape(x, config_.output.batched(input.shape()[0]));
}

template class CosmoFlow<1>;
template class CosmoFlow<2>;
template class CosmoFlow<3>;

FieldModelEntry cosmoflow_entry() {
  return {.name = "cosmoflow",
          .description =
              "fields to numbers by CosmoFlow's CNN, 1-D to 3-D; width 32, depth as often as sizes can be halved, up "
              "to 5",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            const int axes = spatial_axes_of_input("cosmoflow", c);
            CosmoFlowConfig config{.input = c.input, .output = c.output, .dropout = c.dropout, .bounded = false};
            if (c.width > 0) config.width = c.width;
            config.levels =
                c.depth > 0 ? c.depth : std::max<std::int64_t>(1, rough_halvings(c.input.tail(), config.levels));
            return with_axes(
                axes, [&](auto n) -> std::unique_ptr<FieldModel> { return std::make_unique<CosmoFlow<n()>>(config); });
          },
          .reads = {"dropout"}};
}

}  // namespace lockstep::models
