// The gradient noise scale (McCandlish et al., "An empirical model of large-batch training" (2018), appendix A.1): from
// the squared norms of the mean gradients of shards, and of the mean gradient of the whole batch, unbiased estimates of
// the squared norm |G|^2 of the true gradient and of the trace tr(S) of the covariance of one sample's gradient. Their
// quotient tr(S) / |G|^2, in samples, is about the batch size above which larger batches bring little. Each estimate is
// noisy, so both are averaged over steps before they are divided. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

namespace lockstep::parallel {

// The sums over shards that the noise needs; they travel with the squares of the gradient.
enum NoiseSum : std::size_t { kShardSquares, kInverseSamples, kShards, kNoiseSums };

// The estimates of one step.
struct NoiseEstimate {
  double trace = 0;   // tr(S)
  double square = 0;  // |G|^2
};

// `sums` by NoiseSum: over the shards with samples, of the squared norm of the shard's mean gradient, of 1 / (samples
// of the shard), and of 1; `square` is the squared norm of the mean gradient of all `samples`. Returns nothing for less
// than two shards.
inline std::optional<NoiseEstimate> estimate_noise(std::span<const double> sums, double square, double samples) {
  const double shards = sums[kShards];
  if (shards < 2) return std::nullopt;
  // E[mean of shards' squares] = |G|^2 + tr(S) * mean(1 / samples of a shard); E[square] = |G|^2 + tr(S) / samples.
  const double trace = (sums[kShardSquares] / shards - square) / (sums[kInverseSamples] / shards - 1 / samples);
  return NoiseEstimate{.trace = trace, .square = square - trace / samples};
}

// Averages estimates over about the last 100 steps.
class NoiseMeter {
 public:
  void add(const NoiseEstimate& estimate) {
    constexpr double kMemory = 100;
    const double weight = 1 / (++state_[0] < kMemory ? state_[0] : kMemory);
    state_[1] += weight * (estimate.trace - state_[1]);
    state_[2] += weight * (estimate.square - state_[2]);
  }
  // In samples; empty without a step, and while an average is not above 0, as noise may make it.
  std::optional<double> scale() const {
    return state_[1] > 0 && state_[2] > 0 ? std::optional(state_[1] / state_[2]) : std::nullopt;
  }
  std::span<double> state() { return state_; }  // steps, averages of tr(S) and of |G|^2, for checkpoints
  std::span<const double> state() const { return state_; }

 private:
  std::array<double, 3> state_{};
};

}  // namespace lockstep::parallel
