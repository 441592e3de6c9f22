// The part that the passes of batch normalisation share: how a view is cut, which fixes the order of its sums; the two
// passes over a channel block; and the lanes of its channels. Internal to batch_norm.cpp and batch_norm_backward.cpp.
#pragma once

#include <omp.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/batch_norm.h"

namespace lockstep::kernels::native {

// Elements, at least, of a chunk: 128 KiB of f32, so that a chunk fits the L2 cache.
inline constexpr std::int64_t kChunk = 32768;
inline constexpr std::int64_t kMaxChunks = 32;  // of a channel block

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
inline Total total(const Cuts& cuts, const Partial* partials) {
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

// Lanes of a norm that is applied to the residual.
inline NormaliseLanes given_lanes(const Cuts& cuts, std::int64_t block, const GivenNorm& norm) {
  if (norm.mean == nullptr) return {};
  return normalise_lanes(cuts, block, {norm.gamma, norm.beta}, [&](std::int64_t channel) {
    return Statistics{norm.mean[channel], norm.inv_std[channel]};
  });
}

}  // namespace lockstep::kernels::native
