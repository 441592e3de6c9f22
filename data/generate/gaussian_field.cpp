#include "data/generate/gaussian_field.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/nn/sequential.h"
#include "lockstep/ops/fourier.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep::datasets {
namespace {

void check_range(std::string_view names, double low, double high, double least, double most) {
  check(low >= least && low <= high && high <= most, "gaussian", "{} are {} and {}, expected {} to {}, ascending",
        names, low, high, least, most);
}

}  // namespace

GaussianField::GaussianField(const GaussianFieldOptions& options) : options_(options) {
  const std::int64_t n = options_.size;
  check(n >= 2 && n <= 512, "gaussian", "--size is {}, expected 2 to 512", n);
  check_range("--min-log-amplitude and --max-log-amplitude", options_.min_log_amplitude, options_.max_log_amplitude,
              -20, 20);
  check_range("--min-index and --max-index", options_.min_index, options_.max_index, -8, 8);
  fields_ = {{"density", Shape({n, n, n}), DType::F64}, {"parameters", Shape({2}), DType::F64}};
  const auto frequency = [n](std::int64_t i) { return static_cast<double>(std::min(i, n - i)); };
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t k = 0; k <= n / 2; ++k) {
        const double square = frequency(i) * frequency(i) + frequency(j) * frequency(j) + frequency(k) * frequency(k);
        log_frequency_.push_back(square > 0 ? math::log(2 * std::sqrt(square) / static_cast<double>(n))
                                            : -std::numeric_limits<double>::infinity());
      }
    }
  }
}

std::string GaussianField::parameters() const {
  const GaussianFieldOptions& o = options_;
  return nlohmann::json{{"equation", "spectrum = exp(parameters[0]) * (k / k_nyquist) ^ parameters[1]"},
                        {"size", o.size},
                        {"log_amplitude", {o.min_log_amplitude, o.max_log_amplitude}},
                        {"index", {o.min_index, o.max_index}}}
      .dump();
}

void GaussianField::generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                             std::span<double* const> out) const {
  const std::int64_t n = options_.size;
  const Shape sizes = fields_[0].shape;
  const auto points = static_cast<std::size_t>(sizes.elements()), frequencies = log_frequency_.size();
  Tensor noise(sizes.batched(count), DType::F64), filter(Shape({count, n, n, n / 2 + 1, 1}), DType::F64);
  const std::span<double> noises = noise.data<double>(), filters = filter.data<double>();
  for_each_sample(count, [&](std::int64_t i) {
    const auto sample = static_cast<std::size_t>(i);
    RandomStream random = this->random(seed, first + i);
    const double amplitude = random.uniform(options_.min_log_amplitude, options_.max_log_amplitude);
    const double index = random.uniform(options_.min_index, options_.max_index);
    out[1][2 * sample] = amplitude;
    out[1][2 * sample + 1] = index;
    for (double& value : noises.subspan(sample * points, points)) value = random.normal();
    for (std::size_t f = 0; f < frequencies; ++f) {
      const bool mean = std::isinf(log_frequency_[f]);
      filters[sample * frequencies + f] = mean ? 0 : math::exp((amplitude + index * log_frequency_[f]) / 2);
    }
  });
  const nn::Sequential none;  // a predictor of no weights
  infer::Predictor filtered(none,
                            [&](const plan::Inputs& in) { return irfft(rfft(in["noise"], 3) * in["filter"], sizes); },
                            {.dtype = DType::F64, .batch = count});
  const Tensor density = filtered({{"noise", noise}, {"filter", filter}});
  std::ranges::copy(density.data<double>(), out[0]);
}

}  // namespace lockstep::datasets
