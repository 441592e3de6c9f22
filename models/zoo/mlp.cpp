#include "models/zoo/mlp.h"

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {

LinearLayers linear_layers(nn::Module* owner, const std::vector<std::int64_t>& sizes) {
  check(sizes.size() >= 2, "mlp", "{} sizes, expected at least those of input and output", sizes.size());
  for (const std::int64_t size : sizes) check(size > 0, "mlp", "a layer of size {}, expected at least 1", size);
  LinearLayers layers;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i) {
    const nn::LinearConfig layer{.in = sizes[i], .out = sizes[i + 1]};
    layers.push_back(std::make_unique<nn::Child<nn::Linear>>(owner, std::to_string(2 * i), layer));
  }
  return layers;
}

Mlp::Mlp(const std::vector<std::int64_t>& sizes) : layers_(linear_layers(this, sizes)) {}

Value Mlp::operator()(Value x) const {
  if (x.shape().rank() > 2) x = flatten(x);  // (N, C, H, W) -> (N, C H W)
  x = (*layers_.front())(x);
  for (std::size_t i = 1; i < layers_.size(); ++i) x = (*layers_[i])(relu(x));
  return x;
}

}  // namespace lockstep::models
