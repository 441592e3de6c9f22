// Gaussian random fields in a periodic cube: white noise, filtered so that the power spectrum is
//   P(k) = A (k / k_N)^n,   k = |m| / (size / 2) k_N for the integer frequencies m,
// where k_N is the Nyquist frequency of an axis, and P(0) = 0. P(k) is the mean of |DFT|^2 / size^3, so a flat spectrum
// (n = 0) of A = 1 is noise of variance 1. A model finds log A and n in the field.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/generate/generator.h"

namespace lockstep::datasets {

struct GaussianFieldOptions {
  std::int64_t size = 32;                                // cells per axis
  double min_log_amplitude = -1, max_log_amplitude = 1;  // log A is uniform in this range
  double min_index = -3, max_index = 0;                  // n too
};

// Fields: "density" (size, size, size) and "parameters" (2): log A and n.
class GaussianField final : public Generator {
 public:
  explicit GaussianField(const GaussianFieldOptions& options);  // throws Error for options out of range

  std::string_view name() const override { return "gaussian"; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::string parameters() const override;
  void generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                std::span<double* const> out) const override;

 private:
  GaussianFieldOptions options_;
  std::vector<data::Field> fields_;
  std::vector<double> log_frequency_;  // (size, size, size / 2 + 1): log(k / k_N); -infinity at 0
};

}  // namespace lockstep::datasets
