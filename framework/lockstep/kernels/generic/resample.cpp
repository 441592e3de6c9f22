#include "lockstep/kernels/generic/resample.h"

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::kernels::generic {
namespace {

// Axis `from_end` of the maps, counted from the innermost one.
AxisMap axis_or_one(const std::vector<AxisMap>& maps, std::size_t from_end) {
  return maps.size() < from_end ? AxisMap::identity(1) : maps[maps.size() - from_end];
}

}  // namespace

template <class C>
AxisTaps<C>::AxisTaps(const AxisMap& map) : in(map.in()), out(map.out()), begin{0} {
  for (const auto& of_output : map.taps()) {
    for (const AxisMap::Tap& tap : of_output) {
      from.push_back(tap.from);
      weight.push_back(static_cast<C>(tap.weight));
    }
    begin.push_back(static_cast<std::int64_t>(from.size()));
  }
}

template <class T, class C>
Resampler<T, C>::Resampler(const std::vector<AxisMap>& maps, std::int64_t planes, std::int64_t block)
    : planes_(planes),
      block_(block),
      depth_(axis_or_one(maps, 3)),
      height_(axis_or_one(maps, 2)),
      width_(axis_or_one(maps, 1)) {
  check(block == 1 || block == 8 || block == 16, "resample", "channels lie in blocks of {}, expected 1, 8 or 16",
        block);
}

template <class T, class C>
template <int Block>
void Resampler<T, C>::row(const T* image, std::int64_t d, std::int64_t h, T* y) const {
  const auto at = [](const auto& values, std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
  for (std::int64_t w = 0; w < width_.out; ++w, y += Block) {
    C total[Block] = {};
    for (std::int64_t i = at(depth_.begin, d); i < at(depth_.begin, d + 1); ++i) {
      for (std::int64_t j = at(height_.begin, h); j < at(height_.begin, h + 1); ++j) {
        const T* in_row = image + (at(depth_.from, i) * height_.in + at(height_.from, j)) * width_.in * Block;
        const C of_row = at(depth_.weight, i) * at(height_.weight, j);
        for (std::int64_t k = at(width_.begin, w); k < at(width_.begin, w + 1); ++k) {
          const T* from = in_row + at(width_.from, k) * Block;
          const C weight = of_row * at(width_.weight, k);
#pragma omp simd
          for (int l = 0; l < Block; ++l) total[l] += weight * static_cast<C>(from[l]);
        }
      }
    }
    for (int l = 0; l < Block; ++l) y[l] = static_cast<T>(total[l]);
  }
}

template <class T, class C>
template <int Block>
void Resampler<T, C>::run_blocks(const T* x, T* y) const {
  const std::int64_t in = depth_.in * height_.in * width_.in * Block, out = width_.out * Block;
  const std::int64_t rows = depth_.out * height_.out;
  parallel_for(planes_ * rows, out * 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      row<Block>(x + r / rows * in, r % rows / height_.out, r % height_.out, y + r * out);
    }
  });
}

template <class T, class C>
void Resampler<T, C>::run(const T* x, T* y) const {
  if (block_ == 16) return run_blocks<16>(x, y);
  if (block_ == 8) return run_blocks<8>(x, y);
  return run_blocks<1>(x, y);
}

template class Resampler<float, float>;
template class Resampler<double, double>;
template class Resampler<BFloat16, float>;

}  // namespace lockstep::kernels::generic
