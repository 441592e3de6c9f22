#include "lockstep/nn/init.h"

#include <algorithm>
#include <cmath>

namespace lockstep::nn {
namespace {

struct Fans {
  double in, out;
};

Fans fans_of(const Shape& shape) {  // (out, in, ...): matrices and filters
  if (shape.rank() < 2) return {static_cast<double>(shape.elements()), static_cast<double>(shape.elements())};
  const double field = static_cast<double>(shape.tail().tail().elements());
  return {static_cast<double>(shape[1]) * field, static_cast<double>(shape[0]) * field};
}

double pick(const Shape& shape, Fan fan) {
  return std::max(1.0, fan == Fan::In ? fans_of(shape).in : fans_of(shape).out);
}

template <class Deviation>
Initializer normal_by(Deviation deviation) {
  return [deviation](const Shape& shape, std::span<double> values, RandomStream& random) {
    const double d = deviation(shape);
    for (double& v : values) v = d * random.normal();
  };
}

template <class Bound>
Initializer uniform_by(Bound bound) {
  return [bound](const Shape& shape, std::span<double> values, RandomStream& random) {
    const double b = bound(shape);
    for (double& v : values) v = random.uniform(-b, b);
  };
}

}  // namespace

Initializer constant(double value) {
  return [value](const Shape&, std::span<double> values, RandomStream&) { std::ranges::fill(values, value); };
}

Initializer uniform(double low, double high) {
  return [low, high](const Shape&, std::span<double> values, RandomStream& random) {
    for (double& v : values) v = random.uniform(low, high);
  };
}

Initializer normal(double mean, double deviation) {
  return [mean, deviation](const Shape&, std::span<double> values, RandomStream& random) {
    for (double& v : values) v = mean + deviation * random.normal();
  };
}

Initializer kaiming_normal(Fan fan, double slope) {
  return normal_by([=](const Shape& s) { return std::sqrt(2 / (1 + slope * slope) / pick(s, fan)); });
}

Initializer kaiming_uniform(Fan fan, double slope) {
  return uniform_by([=](const Shape& s) { return std::sqrt(3 * 2 / (1 + slope * slope) / pick(s, fan)); });
}

Initializer xavier_normal(double gain) {
  return normal_by([=](const Shape& s) { return gain * std::sqrt(2 / (fans_of(s).in + fans_of(s).out)); });
}

Initializer xavier_uniform(double gain) {
  return uniform_by([=](const Shape& s) { return gain * std::sqrt(6 / (fans_of(s).in + fans_of(s).out)); });
}

Initializer torch_default(std::int64_t fan_in) {
  const double bound = fan_in > 0 ? 1 / std::sqrt(static_cast<double>(fan_in)) : 0;
  return uniform(-bound, bound);
}

}  // namespace lockstep::nn
