#include "models/zoo/vae.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/normal_noise.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"

namespace lockstep::models {
namespace {

// exp() of these is finite in f32 and far from all that training leads to.
constexpr double kLeastLogVariance = -30, kMostLogVariance = 20;

Shape smallest(const VaeConfig& c) {
  check(c.latent >= 1 && c.kl_weight >= 0, "vae",
        "{} latent numbers and weight {} of the divergence, expected at least 1 and 0", c.latent, c.kl_weight);
  check(c.coder.levels >= 1 && halvings(c.sizes, c.coder.levels) == c.coder.levels, "vae",
        "fields are {}, and {} levels need sizes that {} divides; expected such sizes, or fewer levels", c.sizes.str(),
        c.coder.levels, std::int64_t{1} << c.coder.levels);
  std::vector<std::int64_t> shape{c.coder.width << (c.coder.levels - 1)};
  for (const std::int64_t size : c.sizes.dims()) shape.push_back(size >> c.coder.levels);
  return Shape(std::move(shape));
}

}  // namespace

template <int Axes>
Vae<Axes>::Vae(const VaeConfig& c)
    : Autoencoder<Axes>(c.coder),
      kl_weight_(c.kl_weight),
      smallest_(smallest(c)),
      mean_(this, "mean", {.in = smallest_.elements(), .out = c.latent}),
      log_variance_(this, "log_variance", {.in = smallest_.elements(), .out = c.latent}),
      expand_(this, "expand", {.in = c.latent, .out = smallest_.elements()}) {}

template <int Axes>
FieldModel::Result Vae<Axes>::with_penalty(Value input) const {
  const Value x = flatten(this->encode(input));
  const auto wide = [](Value y) { return cast(y, sum_type(y.dtype())); };  // f32 also where products are in bf16
  const Value mean = wide(mean_(x));
  const Value log_variance = clamp(wide(log_variance_(x)), kLeastLogVariance, kMostLogVariance);
  Value z = mean;
  if (input.graph().training()) {
    const Value deviation = exp(0.5 * log_variance);
    z = mean + deviation * normal_noise_like(deviation, this->path() + ".noise");
  }
  const std::int64_t samples = input.shape()[0];
  const Value prediction = this->decode(reshape(expand_(z), smallest_.batched(samples)));
  const Value twice_kl = sum(square(mean) + exp(log_variance) - 1.0 - log_variance);
  return {prediction, (kl_weight_ / static_cast<double>(prediction.shape().elements())) * twice_kl};
}

template class Vae<1>;
template class Vae<2>;
template class Vae<3>;

FieldModelEntry vae_entry() {
  return {.name = "vae",
          .description =
              "fields to fields by a variational autoencoder, 1-D to 3-D, for sizes that 2^depth divides; width 32, "
              "depth 3 levels, latent 32",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            const int axes = spatial_axes("vae", c);
            VaeConfig config{.coder = autoencoder_config(c), .sizes = c.input.tail(), .kl_weight = c.kl_weight};
            if (c.latent > 0) config.latent = c.latent;
            return with_axes(axes,
                             [&](auto n) -> std::unique_ptr<FieldModel> { return std::make_unique<Vae<n()>>(config); });
          },
          .reads = {"latent", "kl-weight"}};
}

}  // namespace lockstep::models
