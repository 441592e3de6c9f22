#include "lockstep/data/augment/gaussian_noise.h"

#include <cmath>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

template <class T>
void add_noise(RandomStream& random, const GaussianNoiseOptions& options, const std::byte* in, std::byte* out,
               std::int64_t count) {
  const T* from = reinterpret_cast<const T*>(in);
  T* to = reinterpret_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = static_cast<T>(static_cast<double>(from[i]) + (options.mean + options.stddev * random.normal()));
}

}  // namespace

GaussianNoise::GaussianNoise(GaussianNoiseOptions options)
    : FieldTransform("gaussian noise", options.field),
      options_(std::move(options)),
      use_("gaussian noise " + options_.field) {
  check(options_.stddev >= 0 && std::isfinite(options_.stddev) && std::isfinite(options_.mean), site(),
        "mean {} and standard deviation {}, expected finite numbers, the latter at least 0", options_.mean,
        options_.stddev);
}

Field GaussianNoise::changed(const Field& before) const {
  expect_floats(before);
  return before;
}

void GaussianNoise::change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const {
  RandomStream random = key.random(use_);
  const std::int64_t count = before.shape.elements();
  if (before.dtype == DType::F32) {
    add_noise<float>(random, options_, in, out, count);
  } else {
    add_noise<double>(random, options_, in, out, count);
  }
}

}  // namespace lockstep::data
