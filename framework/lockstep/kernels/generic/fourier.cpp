#include "lockstep/kernels/generic/fourier.h"

#include <algorithm>
#include <numbers>
#include <type_traits>

#include "lockstep/core/math.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/partition.h"
#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::kernels::generic {
namespace {

using native::FourierLine;
using FourierKind = FourierOptions::Kind;

// Parts with memory of their own into which work is cut, for as many threads; no result depends on it.
constexpr std::int64_t kMostParts = 16;
constexpr std::int64_t kLinesAtOnce = 64;  // of small items that go through all axes together

template <class T>
const native::FourierTable<T>& fourier_table() {
  if constexpr (std::is_same_v<T, float>) {
    return native_kernels().fourier_f32;
  } else {
    return native_kernels().fourier_f64;
  }
}

std::vector<std::int64_t> radices_of(std::int64_t n) {
  std::vector<std::int64_t> radices;
  for (const std::int64_t r : {4, 2, 3, 5}) {
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  for (std::int64_t r = 7; n > 1; r += 2) {
    if (r * r > n) r = n;  // a prime
    for (; n % r == 0; n /= r) radices.push_back(r);
  }
  return radices;
}

// Appends e^(2 pi i j / n) or its conjugate, 0 <= j <= n: exact where it is 1, i, -1 or -i, with an angle of at most pi
// / 4.
template <class T>
void append_root(std::vector<T>& roots, std::int64_t j, std::int64_t n, bool positive) {
  const std::int64_t quarter = (8 * j + n) / (2 * n), rest = 4 * j - quarter * n;  // j / n = (quarter + rest / n) / 4
  const double angle = std::numbers::pi / 2 * (static_cast<double>(rest) / static_cast<double>(n));
  double c = math::cos(angle), s = math::sin(angle);
  for (std::int64_t q = 0; q < quarter % 4; ++q) {
    const double turned = -s;
    s = c;
    c = turned;
  }
  roots.push_back(static_cast<T>(c));
  roots.push_back(static_cast<T>(positive ? s : -s));
}

}  // namespace

template <class T>
FourierPlan<T>::FourierPlan(FourierLine line, std::int64_t elements, bool inverse)
    : length_(line != FourierLine::Complex && elements % 2 == 0 ? elements / 2 : elements),
      radices_(radices_of(length_)) {
  for (std::int64_t j = 0; j < length_; ++j) append_root(roots_, j, length_, inverse);
  for (std::int64_t j = 0; length_ < elements && j <= length_; ++j) append_root(half_roots_, j, elements, inverse);
}

template <class T>
typename FourierPlan<T>::Table::Plan FourierPlan<T>::view() const {
  return {.length = length_,
          .count = static_cast<std::int64_t>(radices_.size()),
          .radices = radices_.data(),
          .roots = roots_.data(),
          .half_roots = half_roots_.empty() ? nullptr : half_roots_.data()};
}

template <class T>
FourierTransform<T>::FourierTransform(const FourierOptions& o, std::int64_t batch) : batch_(batch) {
  const auto axes = static_cast<std::size_t>(o.sizes.rank());
  plans_.reserve(axes);
  // The real axis, where there is one, is the first to become complex and the last to become real.
  for (std::size_t k = 0; k < axes; ++k) add_axis(o, o.kind == FourierKind::FromHalf ? k : axes - 1 - k);
  for (std::size_t k = 0; k < axes; ++k) {
    scratch_ = std::max(scratch_, 4 * (axes_[k].pass.plan.length + 1) * native::kLanes);
    if (k + 1 < axes) buffer_ = std::max(buffer_, axes_[k].to);
  }
  axes_.back().pass.scale = static_cast<T>(o.scale);
  std::int64_t fewest = lines(axes_[0]);
  for (const Axis& axis : axes_) fewest = std::min(fewest, lines(axis));
  by_items_ = axes > 1 && batch_ >= kMostParts;
  if (by_items_) chunk_ = (kLinesAtOnce + fewest - 1) / fewest;
  const std::int64_t blocks =
      by_items_ ? batch_ : (lines(axes_[0]) * (axes == 1 ? batch_ : 1) + native::kLanes - 1) / native::kLanes;
  parts_ = std::clamp<std::int64_t>(blocks, 1, kMostParts);
}

template <class T>
void FourierTransform<T>::add_axis(const FourierOptions& o, std::size_t axis) {
  const auto d = static_cast<int>(axis);
  const int last = o.sizes.rank() - 1;
  const bool real = o.kind != FourierKind::Complex && d == last;
  const FourierLine line = !real                           ? FourierLine::Complex
                           : o.kind == FourierKind::ToHalf ? FourierLine::ToHalf
                                                           : FourierLine::FromHalf;
  plans_.emplace_back(line, o.sizes[d], o.inverse);
  const bool to_spectrum = o.kind != FourierKind::FromHalf;
  const std::int64_t from = to_spectrum ? o.sizes[d] : o.kept[d], to = to_spectrum ? o.kept[d] : o.sizes[d];
  // Axes behind this one were transformed before it, or with FromHalf will be after it.
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < d; ++i) outer *= o.sizes[i];
  for (int i = d + 1; i <= last; ++i) inner *= o.kept[i];
  axes_.push_back({.pass = {.line = line,
                            .plan = plans_.back().view(),
                            .from_length = from,
                            .to_length = to,
                            .inner = inner,
                            .scale = T(1),
                            .middle = static_cast<T>(real ? o.middle : 1)},
                   .outer = outer,
                   .from = outer * inner * from * (line == FourierLine::ToHalf ? 1 : 2),
                   .to = outer * inner * to * (line == FourierLine::FromHalf ? 1 : 2)});
}

template <class T>
std::size_t FourierTransform<T>::workspace_bytes() const {
  const std::int64_t buffers = by_items_ ? parts_ * 2 * chunk_ * buffer_ : 2 * buffer_;
  return static_cast<std::size_t>(parts_ * scratch_ + buffers) * sizeof(T);
}

template <class T>
void FourierTransform<T>::run(const T* x, T* y, T* workspace) const {
  if (!by_items_) return run_lines(x, y, workspace);
  const std::int64_t memory = scratch_ + 2 * chunk_ * buffer_;
  parallel_for(parts_, batch_ * axes_[0].from / parts_, [=, this](std::int64_t begin, std::int64_t end) {
    for (std::int64_t p = begin; p < end; ++p) {
      const Range part = part_of(batch_, parts_, p);
      run_items(part.begin, part.end, x, y, workspace + p * memory);
    }
  });
}

// All axes of a few items, one after the other, in memory that stays in a cache.
template <class T>
void FourierTransform<T>::run_items(std::int64_t begin, std::int64_t end, const T* x, T* y, T* memory) const {
  T* const buffers[2] = {memory + scratch_, memory + scratch_ + chunk_ * buffer_};
  for (std::int64_t item = begin; item < end; item += chunk_) {
    const std::int64_t items = std::min(chunk_, end - item);
    const T* from = x + item * axes_.front().from;
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      Pass pass = axes_[k].pass;
      T* const to = k + 1 == axes_.size() ? y + item * axes_[k].to : buffers[k % 2];
      pass.from = from;
      pass.to = to;
      fourier_table<T>().run(pass, 0, items * lines(axes_[k]), memory);
      from = to;
    }
  }
}

// The lines of one axis of an item on all threads, axis by axis; of a single axis, the lines of all items.
template <class T>
void FourierTransform<T>::run_lines(const T* x, T* y, T* workspace) const {
  T* const buffers[2] = {workspace + parts_ * scratch_, workspace + parts_ * scratch_ + buffer_};
  const std::int64_t items = axes_.size() == 1 ? batch_ : 1;
  for (std::int64_t item = 0; item < batch_; item += items) {
    const T* from = x + item * axes_.front().from;
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      const Axis& axis = axes_[k];
      Pass pass = axis.pass;
      T* const to = k + 1 == axes_.size() ? y + item * axis.to : buffers[k % 2];
      pass.from = from;
      pass.to = to;
      const std::int64_t count = items * lines(axis);
      parallel_for(parts_, items * std::max(axis.from, axis.to) / parts_,
                   [=, this](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t p = begin; p < end; ++p) {
                       const Range part = part_in_blocks({0, count}, parts_, p, native::kLanes);
                       fourier_table<T>().run(pass, part.begin, part.end, workspace + p * scratch_);
                     }
                   });
      from = to;
    }
  }
}

template <class T>
void spectral_product(const SpectralProductOptions& o, const SpectralShape& s, const T* a, const T* b, T* y) {
  using Result = SpectralProductOptions::Result;
  // Distances, in blocks of `modes`, between neighbours of a row, a column or a term.
  const bool output = o.result == Result::Output, weights = o.result == Result::Weights;
  const std::int64_t a_row = weights ? 1 : s.terms, a_term = weights ? s.rows : 1;
  const std::int64_t b_column = output || weights ? 1 : s.terms, b_term = output || weights ? s.columns : 1;
  parallel_for(s.rows * s.columns, 4 * s.terms * s.modes, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i / s.columns, column = i % s.columns;
      fourier_table<T>().sum({.n = s.modes,
                              .terms = s.terms,
                              .a = a + 2 * s.modes * row * a_row,
                              .a_stride = s.modes * a_term,
                              .conjugate_a = o.conjugate_first,
                              .b = b + 2 * s.modes * column * b_column,
                              .b_stride = s.modes * b_term,
                              .conjugate_b = o.conjugate_second,
                              .y = y + 2 * s.modes * i});
    }
  });
}

template class FourierPlan<float>;
template class FourierPlan<double>;
template class FourierTransform<float>;
template class FourierTransform<double>;
template void spectral_product<float>(const SpectralProductOptions&, const SpectralShape&, const float*, const float*,
                                      float*);
template void spectral_product<double>(const SpectralProductOptions&, const SpectralShape&, const double*,
                                       const double*, double*);

}  // namespace lockstep::kernels::generic
