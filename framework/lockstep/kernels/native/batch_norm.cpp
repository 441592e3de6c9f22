#include "lockstep/kernels/native/batch_norm.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/kernels/native/batch_norm_passes.h"

namespace lockstep::kernels::native {
namespace {

constexpr float to_float(float x) { return x; }
constexpr float to_float(Bf16 x) { return static_cast<float>(std::bit_cast<BFloat16>(x)); }

// The mean of a few elements of each channel, at positions spread over the batch. Values are shifted by it, so that
// sums in f32 keep the digits of the variance.
template <class T>
std::array<float, kLanes> find_pivot(const Cuts& cuts, const T* x, std::int64_t lanes) {
  const std::int64_t block = cuts.view.block, positions = cuts.per_block / block, spatial = cuts.view.spatial;
  const std::int64_t count = std::min<std::int64_t>(16, positions);
  float sum[kLanes] = {};
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t position = part_of(positions, count, k).begin;
    const T* at = x + position / spatial * cuts.blocks * cuts.segment + position % spatial * block;
    for (std::int64_t l = 0; l < lanes; ++l) sum[l] += to_float(at[l]);
  }
  std::array<float, kLanes> pivot = {};
  for (std::size_t l = 0; count > 0 && l < kLanes; ++l) {
    pivot[l] = sum[static_cast<std::int64_t>(l) % block] / static_cast<float>(count);
  }
  return pivot;
}

// The statistics of one channel block, from its first pass.
struct BlockMoments {
  BlockMoments(const Cuts& c, const Partial* block) : cuts(c), t(total(c, block)) {
    for (std::int64_t l = 0; l < cuts.view.block; ++l) {
      // M2 = sum d^2 - (sum d)^2 / n (Chan, Golub and LeVeque 1983)
      pivot[l] = static_cast<double>(block->pivot[static_cast<std::size_t>(l)]);
      mean[l] = pivot[l] + t.first[l] / count();
      m2[l] = std::max(t.second[l] - t.first[l] * t.first[l] / count(), 0.0);
    }
  }
  double count() const { return std::max(elements(), 1.0); }
  double elements() const { return static_cast<double>(cuts.view.batch * cuts.view.spatial); }
  void store(std::int64_t block, double* sums) const {
    for (std::int64_t l = 0; l < cuts.lanes(block); ++l) {
      const std::int64_t channel = block * cuts.view.block + l;
      sums[channel] = t.first[l] + elements() * pivot[l];
      sums[cuts.view.channels + channel] = m2[l] + elements() * mean[l] * mean[l];
    }
  }

  const Cuts& cuts;
  Total t;
  double pivot[kLanes] = {}, mean[kLanes] = {}, m2[kLanes] = {};
};

// The first pass of forward.
template <class T>
auto moments_pass(const Cuts& cuts, const BatchNormForward<T>& o, const BatchNormTable<T>& level) {
  return [&cuts, &level, x_all = o.x, partials = reinterpret_cast<Partial*>(o.workspace)](std::int64_t b) {
    const T* x = x_all + cuts.offset(b);
    return [&cuts, &level, x, block = partials + b * cuts.chunks,
            pivot = find_pivot(cuts, x, cuts.lanes(b))](std::int64_t chunk) {
      Partial& p = *new (&block[chunk]) Partial{.pivot = pivot};
      level.moments(cuts.strip(chunk), x, p.pivot.data(), p.sums);
    };
  };
}

// Computes mean and inv_std of the channels of block b, and writes them and the sums if `publish`.
template <class T>
std::array<Statistics, kLanes> block_statistics(const Cuts& cuts, const BatchNormForward<T>& o, std::int64_t b,
                                                bool publish) {
  const BlockMoments m(cuts, reinterpret_cast<const Partial*>(o.workspace) + b * cuts.chunks);
  std::array<Statistics, kLanes> statistics = {};
  const std::int64_t first = b * o.view.block;
  for (std::int64_t l = 0; l < cuts.lanes(b); ++l) {
    Statistics& s = statistics[static_cast<std::size_t>(l)];
    s = {static_cast<float>(m.mean[l]), static_cast<float>(1 / std::sqrt(m.m2[l] / m.count() + o.eps))};
    if (!publish) continue;
    o.mean[first + l] = s.mean;
    o.inv_std[first + l] = s.inv_std;
  }
  if (publish) m.store(b, o.sums);
  return statistics;
}

}  // namespace

std::int64_t batch_norm_workspace(const BatchNormView& view) {
  const Cuts cuts(view);
  return cuts.blocks * cuts.chunks * static_cast<std::int64_t>(sizeof(Partial));
}

template <class T>
void batch_norm_forward(const BatchNormForward<T>& o, const NativeKernels& kernels) {
  const Cuts cuts(o.view);
  const auto& level = table<T>(kernels);
  const auto finish = [&](std::int64_t b, bool publish) {
    const auto statistics = block_statistics(cuts, o, b, publish);
    const NormaliseLanes lanes = normalise_lanes(cuts, b, {o.gamma, o.beta}, [&](std::int64_t channel) {
      return statistics[static_cast<std::size_t>(channel - b * o.view.block)];
    });
    const T* residual = o.residual ? o.residual + cuts.offset(b) : nullptr;
    return [&cuts, &level, lanes, other = given_lanes(cuts, b, o.of_residual), normed = o.of_residual.mean != nullptr,
            args = typename BatchNormTable<T>::Normalise{o.x + cuts.offset(b), residual, o.y + cuts.offset(b), o.relu}](
               std::int64_t chunk) { level.normalise(cuts.strip(chunk), args, lanes, normed ? &other : nullptr); };
  };
  two_passes(cuts, moments_pass(cuts, o, level), finish);
}

template <class T>
void batch_norm_forward_statistics(const BatchNormForward<T>& o, const NativeKernels& kernels) {
  const Cuts cuts(o.view);
  first_pass(cuts, moments_pass(cuts, o, table<T>(kernels)));
  for (std::int64_t b = 0; b < cuts.blocks; ++b) block_statistics(cuts, o, b, true);
}

template <class T>
void batch_norm_moments(const BatchNormForward<T>& o, const NativeKernels& kernels) {
  const Cuts cuts(o.view);
  first_pass(cuts, moments_pass(cuts, o, table<T>(kernels)));
  const auto* partials = reinterpret_cast<const Partial*>(o.workspace);
  for (std::int64_t b = 0; b < cuts.blocks; ++b) BlockMoments(cuts, partials + b * cuts.chunks).store(b, o.sums);
}

template <class T>
void batch_norm_apply(const BatchNormApply<T>& o, const NativeKernels& kernels) {
  check((o.inv_std == nullptr) != (o.variance == nullptr), "batch_norm", "expected either inv_std or variance");
  const Cuts cuts(o.view);
  const auto statistics = [&](std::int64_t c) {
    if (o.inv_std) return Statistics{o.mean[c], o.inv_std[c]};
    return Statistics{o.mean[c], static_cast<float>(1 / std::sqrt(static_cast<double>(o.variance[c]) + o.eps))};
  };
  parallel_for(cuts.blocks * cuts.chunks, cuts.per_block / cuts.chunks, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t b = i / cuts.chunks, at = cuts.offset(b);
      const NormaliseLanes other = given_lanes(cuts, b, o.of_residual);
      table<T>(kernels).normalise(
          cuts.strip(i % cuts.chunks), {o.x + at, o.residual ? o.residual + at : nullptr, o.y + at, o.relu},
          normalise_lanes(cuts, b, {o.gamma, o.beta}, statistics), o.of_residual.mean != nullptr ? &other : nullptr);
    }
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                     \
  template void batch_norm_forward<T>(const BatchNormForward<T>&, const NativeKernels&);            \
  template void batch_norm_forward_statistics<T>(const BatchNormForward<T>&, const NativeKernels&); \
  template void batch_norm_moments<T>(const BatchNormForward<T>&, const NativeKernels&);            \
  template void batch_norm_apply<T>(const BatchNormApply<T>&, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
