#include "lockstep/kernels/native/batch_norm.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <type_traits>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kChunk = 32768;   // elements, at least, per chunk: 128 KiB of f32, so a chunk fits the L2 cache
constexpr std::int64_t kMaxChunks = 32;  // of a channel block

template <class T>
const BatchNormTable<T>& table(const NativeKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.batch_norm_f32;
  } else {
    return kernels.batch_norm_bf16;
  }
}

// How a view is cut into channel blocks and chunks, which fixes the order of its sums.
struct Cuts {
  explicit Cuts(const BatchNormView& v)
      : view(v), segment(v.spatial * v.block), per_block(v.batch * segment), blocks(v.blocks()) {
    check(v.block == 1 || v.block == 8 || v.block == 16, "batch_norm", "channel block is {}, expected 1, 8 or 16",
          v.block);
    chunks = std::clamp<std::int64_t>(per_block / kChunk, 1, kMaxChunks);
  }
  // The offset of the first element of a block; an empty batch may have null pointers.
  std::int64_t offset(std::int64_t block) const { return per_block > 0 ? block * segment : 0; }
  std::int64_t lanes(std::int64_t block) const { return std::min(view.block, view.channels - block * view.block); }
  Strip whole() const { return {.segment = segment, .stride = blocks * segment, .begin = 0, .end = per_block}; }
  Strip strip(std::int64_t chunk) const {
    const Range part = part_of(per_block / view.block, chunks, chunk);
    Strip s = whole();
    s.begin = part.begin * view.block;
    s.end = part.end * view.block;
    return s;
  }
  // A thread that works on a whole block still has much of the block in its cache in the second pass; this needs enough
  // blocks for all threads. The results are the same.
  bool by_block() const {
    const int threads = omp_in_parallel() ? 1 : omp_get_max_threads();
    return chunks == 1 || blocks % threads == 0 || blocks >= 8 * threads || blocks * per_block <= kChunk;
  }

  BatchNormView view;
  std::int64_t segment, per_block, blocks, chunks = 1;
};

// The results of the first pass, which the second reads.
struct alignas(64) Partial {
  std::array<float, kLanes> pivot = {};  // forward's, the same in all chunks of a block
  double sums[2 * kLanes] = {};
};

// The sums of one channel block.
struct Total {
  double first[kLanes] = {}, second[kLanes] = {};
};
Total total(const Cuts& cuts, const Partial* partials) {
  Total t;
  const std::int64_t block = cuts.view.block;
  for (std::int64_t chunk = 0; chunk < cuts.chunks; ++chunk) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      t.first[l % block] += partials[chunk].sums[l];
      t.second[l % block] += partials[chunk].sums[kLanes + l];
    }
  }
  return t;
}

// start(block) and finish(block, publish) make functions of (chunk), on every thread that works on a block; finish
// writes the block's results in the one call where publish holds.
template <class Start>
void first_pass(const Cuts& cuts, const Start& start) {
  const std::int64_t chunks = cuts.chunks;
  parallel_for(cuts.blocks * chunks, cuts.per_block / chunks, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t b = begin / chunks, last = std::min(end, (b + 1) * chunks);
      const auto first = start(b);
      for (; begin < last; ++begin) first(begin % chunks);
    }
  });
}

template <class Finish>
void second_pass(const Cuts& cuts, const Finish& finish) {
  const std::int64_t chunks = cuts.chunks;
  parallel_for(cuts.blocks * chunks, cuts.per_block / chunks, [&](std::int64_t begin, std::int64_t end) {
    while (end > begin) {
      const std::int64_t b = (end - 1) / chunks, first = std::max(begin, b * chunks);
      const auto second = finish(b, first == b * chunks);
      for (; end > first; --end) second((end - 1) % chunks);
    }
  });
}

// Does both passes, where finish needs the sums of its own block alone.
template <class Start, class Finish>
void two_passes(const Cuts& cuts, const Start& start, const Finish& finish) {
  if (!cuts.by_block()) {
    first_pass(cuts, start);
    second_pass(cuts, finish);
    return;
  }
  const std::int64_t chunks = cuts.chunks;
  parallel_for(cuts.blocks, cuts.per_block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      const auto first = start(b);
      for (std::int64_t c = 0; c < chunks; ++c) first(c);
      const auto second = finish(b, true);
      for (std::int64_t c = chunks; c-- > 0;) second(c);  // backwards: the last chunk is still in the cache
    }
  });
}

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

struct Statistics {
  float mean, inv_std;
};
struct Affine {
  const float *gamma, *beta;  // either may be null
};

// Lanes of a channel block; statistics(channel) are those of the channel.
template <class Of>
NormaliseLanes normalise_lanes(const Cuts& cuts, std::int64_t block, Affine affine, const Of& statistics) {
  NormaliseLanes out;
  const std::int64_t width = cuts.view.block;
  for (std::int64_t l = 0; l < kLanes; ++l) {
    if (l % width >= cuts.lanes(block)) continue;
    const std::int64_t channel = block * width + l % width;
    const Statistics s = statistics(channel);
    out.mean[l] = s.mean;
    out.scale[l] = (affine.gamma ? affine.gamma[channel] : 1) * s.inv_std;
    out.shift[l] = affine.beta ? affine.beta[channel] : 0;
  }
  return out;
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

// The common parts of the two passes of backward.
template <class T>
struct BackwardPasses {
  const Cuts& cuts;
  const BatchNormBackward<T>& o;
  const BatchNormTable<T>& level;

  Partial* partials(std::int64_t b) const { return reinterpret_cast<Partial*>(o.workspace) + b * cuts.chunks; }
  NormaliseLanes lanes(std::int64_t b) const {
    return normalise_lanes(cuts, b, {o.gamma, o.beta}, [this](std::int64_t c) {
      return Statistics{o.mean[c], o.inv_std[c]};
    });
  }
  auto arguments(std::int64_t b) const {
    const std::int64_t at = cuts.offset(b);
    return typename BatchNormTable<T>::Gradient{.x = o.x + at,
                                                .dy = o.dy + at,
                                                .y = o.y ? o.y + at : nullptr,
                                                .addend = o.addend ? o.addend + at : nullptr,
                                                .dx = o.dx ? o.dx + at : nullptr,
                                                .masked = o.dresidual ? o.dresidual + at : nullptr,
                                                .relu = o.relu};
  }
  auto first(std::int64_t b) const {
    return [this, block = partials(b), args = arguments(b), l = lanes(b)](std::int64_t chunk) {
      Partial& p = *new (&block[chunk]) Partial;
      level.gradient_sums(cuts.strip(chunk), args, l, p.sums);
    };
  }
  // dbeta and dgamma / inv_std of the block's lanes are first and second.
  void publish(std::int64_t b, const Total& t) const {
    for (std::int64_t l = 0; l < cuts.lanes(b); ++l) {
      const std::int64_t c = b * cuts.view.block + l;
      if (o.dgamma) o.dgamma[c] = static_cast<float>(t.second[l] * static_cast<double>(o.inv_std[c]));
      if (o.dbeta) o.dbeta[c] = static_cast<float>(t.first[l]);
    }
  }
  // dx = gamma inv_std (g - sum g / n - xhat sum g xhat / n), of the sums of g and of g (x - mean)
  auto second(std::int64_t b, const Total& t, double count) const {
    GradientLanes factors;
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const std::int64_t lane = l % cuts.view.block, c = b * cuts.view.block + lane;
      if (lane >= cuts.lanes(b)) continue;
      const double inverse = static_cast<double>(o.inv_std[c]);
      const double scale = (o.gamma ? static_cast<double>(o.gamma[c]) : 1) * inverse;
      factors.dy[l] = static_cast<float>(scale);
      factors.x[l] = static_cast<float>(-scale * inverse * inverse * t.second[lane] / count);
      factors.constant[l] = static_cast<float>(-scale * t.first[lane] / count);
    }
    return [this, factors, args = arguments(b), l = lanes(b)](std::int64_t chunk) {
      level.gradient(cuts.strip(chunk), args, l, factors);
    };
  }
};

template <class T>
void check_residual(const BatchNormBackward<T>& o) {
  check(!o.dresidual || (o.relu && o.y), "batch_norm", "dresidual is given, expected relu and y beside it");
  check(!o.addend || o.dresidual, "batch_norm", "addend is given, expected dresidual beside it");
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
  const auto* partials = reinterpret_cast<const Partial*>(o.workspace);
  const double count = static_cast<double>(std::max<std::int64_t>(o.view.batch * o.view.spatial, 1));
  const auto finish = [&](std::int64_t b, bool publish) {
    const BlockMoments m(cuts, partials + b * cuts.chunks);
    Statistics statistics[kLanes];
    const std::int64_t first = b * o.view.block;
    for (std::int64_t l = 0; l < cuts.lanes(b); ++l) {
      statistics[l] = {static_cast<float>(m.mean[l]), static_cast<float>(1 / std::sqrt(m.m2[l] / count + o.eps))};
      if (!publish) continue;
      o.mean[first + l] = statistics[l].mean;
      o.inv_std[first + l] = statistics[l].inv_std;
    }
    if (publish) m.store(b, o.sums);
    const NormaliseLanes lanes =
        normalise_lanes(cuts, b, {o.gamma, o.beta}, [&](std::int64_t channel) { return statistics[channel - first]; });
    const T* residual = o.residual ? o.residual + cuts.offset(b) : nullptr;
    return [&cuts, &level, lanes,
            args = typename BatchNormTable<T>::Normalise{o.x + cuts.offset(b), residual, o.y + cuts.offset(b), o.relu}](
               std::int64_t chunk) { level.normalise(cuts.strip(chunk), args, lanes); };
  };
  two_passes(cuts, moments_pass(cuts, o, level), finish);
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
      table<T>(kernels).normalise(cuts.strip(i % cuts.chunks),
                                  {o.x + at, o.residual ? o.residual + at : nullptr, o.y + at, o.relu},
                                  normalise_lanes(cuts, b, {o.gamma, o.beta}, statistics));
    }
  });
}

template <class T>
void batch_norm_backward(const BatchNormBackward<T>& o, const NativeKernels& kernels) {
  check_residual(o);
  const Cuts cuts(o.view);
  const BackwardPasses<T> passes{cuts, o, table<T>(kernels)};
  const double count = static_cast<double>(std::max<std::int64_t>(o.view.batch * o.view.spatial, 1));
  const auto finish = [&](std::int64_t b, bool publish) {
    const Total t = total(cuts, passes.partials(b));
    if (publish) passes.publish(b, t);
    return passes.second(b, t, count);
  };
  two_passes(
      cuts, [&](std::int64_t b) { return passes.first(b); }, finish);
}

template <class T>
void batch_norm_gradient_sums(const BatchNormBackward<T>& o, double* sums, const NativeKernels& kernels) {
  check_residual(o);
  const Cuts cuts(o.view);
  const BackwardPasses<T> passes{cuts, o, table<T>(kernels)};
  first_pass(cuts, [&](std::int64_t b) { return passes.first(b); });
  for (std::int64_t b = 0; b < cuts.blocks; ++b) {
    const Total t = total(cuts, passes.partials(b));
    passes.publish(b, t);
    std::copy_n(t.first, cuts.lanes(b), sums + b * o.view.block);
    std::copy_n(t.second, cuts.lanes(b), sums + o.view.channels + b * o.view.block);
  }
}

template <class T>
void batch_norm_gradient_apply(const BatchNormBackward<T>& o, const double* sums, double count,
                               const NativeKernels& kernels) {
  check(!o.dresidual, "batch_norm", "dresidual is given, expected the masked dy in place of dy");
  const Cuts cuts(o.view);
  const BackwardPasses<T> passes{cuts, o, table<T>(kernels)};
  second_pass(cuts, [&](std::int64_t b, bool) {
    Total t;
    std::copy_n(sums + b * o.view.block, cuts.lanes(b), t.first);
    std::copy_n(sums + o.view.channels + b * o.view.block, cuts.lanes(b), t.second);
    return passes.second(b, t, count);
  });
}

#define LOCKSTEP_INSTANTIATE(T)                                                                          \
  template void batch_norm_forward<T>(const BatchNormForward<T>&, const NativeKernels&);                 \
  template void batch_norm_moments<T>(const BatchNormForward<T>&, const NativeKernels&);                 \
  template void batch_norm_apply<T>(const BatchNormApply<T>&, const NativeKernels&);                     \
  template void batch_norm_backward<T>(const BatchNormBackward<T>&, const NativeKernels&);               \
  template void batch_norm_gradient_sums<T>(const BatchNormBackward<T>&, double*, const NativeKernels&); \
  template void batch_norm_gradient_apply<T>(const BatchNormBackward<T>&, const double*, double, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
