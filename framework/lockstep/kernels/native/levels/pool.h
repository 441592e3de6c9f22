// Max pooling of an image, for table.cpp: lanes are the channels of a block, or neighbouring windows of a plain row.
#pragma once

#include "lockstep/kernels/native/levels/pool_lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

template <class T>
struct MaxPool {
  template <int Block>
  static void blocked(const MaxPoolShape& s, const T* x, T* y, std::uint8_t* index) {
    using L = BlockLanes<Block>;
    constexpr int kWidth = L::kWidth;
    float counted[kWidth] = {};
    for (std::int64_t l = 0; l < s.channels; ++l) counted[l] = 1;
    const Vector<kWidth> counts = load<kWidth>(counted);
    const auto keep = [=](Vector<kWidth> v) {
      return each([](NativeF32 c, NativeF32 u) { return c != 0 ? u : NativeF32{}; }, counts, v);
    };
    const bool three = s.kernel_d == 1 && s.kernel_h == 3 && s.kernel_w == 3 && s.dilation_h == 1 && s.dilation_w == 1;
    const bool two = s.kernel_h == 2 && s.kernel_w == 2 && s.dilation_d == 1 && s.dilation_h == 1 && s.dilation_w == 1;
    for (std::int64_t row = 0; row < s.out_d * s.out_h; ++row) {
      const std::int64_t front = row / s.out_h * s.stride_d - s.padding_d;
      const std::int64_t top = row % s.out_h * s.stride_h - s.padding_h;
      const Taps slices = taps_inside(front, s.in_d, s.kernel_d, s.dilation_d);
      const Taps rows = taps_inside(top, s.in_h, s.kernel_h, s.dilation_h);
      for (std::int64_t ow = 0; ow < s.out_w; ++ow, y += Block, index += Block) {
        const std::int64_t left = ow * s.stride_w - s.padding_w;
        const Taps cols = taps_inside(left, s.in_w, s.kernel_w, s.dilation_w);
        const bool empty = slices.begin == slices.end || rows.begin == rows.end || cols.begin == cols.end;
        const std::int64_t corner = (slices.begin * s.kernel_h + rows.begin) * s.kernel_w + cols.begin;
        const float first = empty ? 0 : static_cast<float>(corner);
        Maxima<kWidth> best{broadcast<kWidth>(kLowest), broadcast<kWidth>(first)};
        const T* from = x + ((front * s.in_h + top) * s.in_w + left) * Block;
        if (three && !empty && rows.end - rows.begin == 3 && cols.end - cols.begin == 3) {
#pragma GCC unroll 3
          for (int r = 0; r < 3; ++r) {
#pragma GCC unroll 3
            for (int c = 0; c < 3; ++c)
              best.take(L::load(from + (r * s.in_w + c) * Block), static_cast<float>(r * 3 + c));
          }
        } else if (two && !empty && rows.end - rows.begin == 2 && cols.end - cols.begin == 2) {
          for (std::int64_t d = slices.begin; d < slices.end; ++d) {
            const T* taps = from + d * s.in_h * s.in_w * Block;
            const auto position = static_cast<float>(d * 4);
#pragma GCC unroll 2
            for (int r = 0; r < 2; ++r) {
#pragma GCC unroll 2
              for (int c = 0; c < 2; ++c)
                best.take(L::load(taps + (r * s.in_w + c) * Block), position + static_cast<float>(r * 2 + c));
            }
          }
        } else {
          for (std::int64_t d = slices.begin; d < slices.end; ++d) {
            for (std::int64_t r = rows.begin; r < rows.end; ++r) {
              const T* taps = from + (d * s.dilation_d * s.in_h + r * s.dilation_h) * s.in_w * Block;
              for (std::int64_t c = cols.begin; c < cols.end; ++c)
                best.take(L::load(taps + c * s.dilation_w * Block),
                          static_cast<float>((d * s.kernel_h + r) * s.kernel_w + c));
            }
          }
        }
        L::store(y, keep(best.value));
        L::store(index, keep(best.at));
      }
    }
  }

  // Sixteen elements, or as many as there are before `end`.
  LOCKSTEP_INLINE static Lanes load_before(const T* p, const T* end) {
    const std::int64_t left = end - p;
    return left >= kLanes ? load(p) : load(p, left > 0 ? left : 0);
  }

  // Windows [begin, end) of a row of a plain plane, that lie between its first and last column. `x` is where the taps
  // of window 0 begin.
  template <int Stride>
  static void inner_windows(const MaxPoolShape& s, Taps rows, const T* x, const T* x_end, std::int64_t begin,
                            std::int64_t end, T* y, std::uint8_t* index) {
    for (std::int64_t o = begin; o < end; o += kLanes) {
      Maxima<kLanes> best{broadcast(kLowest), broadcast(static_cast<float>(rows.begin * s.kernel_w))};
      for (std::int64_t r = rows.begin; r < rows.end; ++r) {
        for (std::int64_t c = 0; c < s.kernel_w; ++c) {
          const T* from = x + r * s.dilation_h * s.in_w + o * Stride + c * s.dilation_w;
          Lanes v = load_before(from, x_end);
          if constexpr (Stride == 2) v = even(v, load_before(from + kLanes, x_end));
          best.take(v, static_cast<float>(r * s.kernel_w + c));
        }
      }
      for_positions(o, end - o < kLanes ? end - o : kLanes, [&](auto position) {
        position.store(y, best.value);
        position.store(index, best.at);
      });
    }
  }

  // One window at an edge.
  static void edge_window(const MaxPoolShape& s, Taps rows, const T* plane, std::int64_t top, std::int64_t left, T* y,
                          std::uint8_t* index) {
    const Taps cols = taps_inside(left, s.in_w, s.kernel_w, s.dilation_w);
    const bool empty = rows.begin == rows.end || cols.begin == cols.end;
    float best[kLanes] = {kLowest};
    std::int64_t at = empty ? 0 : rows.begin * s.kernel_w + cols.begin;
    for (std::int64_t r = rows.begin; r < rows.end; ++r) {
      for (std::int64_t c = cols.begin; c < cols.end; ++c) {
        float v[kLanes];
        store(v, load(plane + (top + r * s.dilation_h) * s.in_w + left + c * s.dilation_w, 1));
        if (!(v[0] > best[0] || v[0] != v[0])) continue;
        best[0] = v[0];
        at = r * s.kernel_w + c;
      }
    }
    store(y, load(best), 1);
    *index = static_cast<std::uint8_t>(at);
  }

  static void plain(const MaxPoolShape& s, const T* x, T* y, std::uint8_t* index) {
    const std::int64_t reach = (s.kernel_w - 1) * s.dilation_w, last = s.in_w - 1 - reach + s.padding_w;
    for (std::int64_t oh = 0; oh < s.out_h; ++oh, y += s.out_w, index += s.out_w) {
      const std::int64_t top = oh * s.stride_h - s.padding_h;
      const Taps rows = taps_inside(top, s.in_h, s.kernel_h, s.dilation_h);
      std::int64_t begin = (s.padding_w + s.stride_w - 1) / s.stride_w, end = last < 0 ? 0 : last / s.stride_w + 1;
      if (end > s.out_w) end = s.out_w;
      if (begin >= end || rows.begin == rows.end) begin = end = s.out_w;
      for (std::int64_t o = 0; o < s.out_w; ++o) {
        if (o == begin) o = end;
        if (o < s.out_w) edge_window(s, rows, x, top, o * s.stride_w - s.padding_w, y + o, index + o);
      }
      const T* from = x + top * s.in_w - s.padding_w;
      if (s.stride_w == 1) {
        inner_windows<1>(s, rows, from, x + s.in_h * s.in_w, begin, end, y, index);
      } else {
        inner_windows<2>(s, rows, from, x + s.in_h * s.in_w, begin, end, y, index);
      }
    }
  }

  static void forward(const MaxPoolShape& s, const T* x, T* y, std::uint8_t* index) {
    if (s.block == 1) return plain(s, x, y, index);
    if (s.block == 8) return blocked<8>(s, x, y, index);
    blocked<16>(s, x, y, index);
  }

  // A row of the image from the `Rows` rows of windows of 3 x 3 at every other position that reach it; of the first
  // row's windows its positions begin at `position`. Sums are taken along rows, then down, as kernels/generic/pool.cpp
  // does.
  template <int Block, int Rows>
  static void row_of_threes(const MaxPoolShape& s, float position, const T* dy, const std::uint8_t* index, T* dx) {
    using L = BlockLanes<Block>;
    using V = Vector<L::kWidth>;
    const auto won = [](V at, float p, V d) {
      return each([p](NativeF32 u, NativeF32 v) { return u == p ? v : NativeF32{}; }, at, d);
    };
    const auto put = [&s, dx](std::int64_t w, V v) {
      if (w >= 0 && w < s.in_w) L::store(dx + w * Block, v);
    };
    const V zero = broadcast<L::kWidth>(0);
    V third[Rows + 1];  // what the window before gives the position that it shares with this one
    for (V& v : third) v = zero;
    std::int64_t w = -s.padding_w;
    for (std::int64_t o = 0; o < s.out_w; ++o, w += 2) {
      V shared = zero, own = zero;
#pragma GCC unroll 2
      for (int r = 0; r < Rows; ++r) {
        const V at = L::load(index + (r * s.out_w + o) * Block), d = L::load(dy + (r * s.out_w + o) * Block);
        const float p = position - static_cast<float>(r * 6);
        shared = shared + third[r] + won(at, p, d);
        own = own + won(at, p + 1, d);
        third[r] = won(at, p + 2, d);
      }
      put(w, shared);
      put(w + 1, own);
    }
    V last = zero;
    for (int r = 0; r < Rows; ++r) last = last + third[r];
    for (; w < s.in_w; ++w, last = zero) put(w, last);
  }

  template <int Block>
  static void blocked_backward(const MaxPoolShape& s, const T* dy, const std::uint8_t* index, T* dx) {
    for (std::int64_t h = 0; h < s.in_h; ++h, dx += s.in_w * Block) {
      const std::int64_t down = h + s.padding_h, first = down < 2 ? 0 : (down - 1) / 2;
      const std::int64_t rows = (down / 2 < s.out_h ? down / 2 + 1 : s.out_h) - first, at = first * s.out_w * Block;
      const auto position = static_cast<float>((down - 2 * first) * 3);
      if (rows == 2) {
        row_of_threes<Block, 2>(s, position, dy + at, index + at, dx);
      } else if (rows == 1) {
        row_of_threes<Block, 1>(s, position, dy + at, index + at, dx);
      } else {
        row_of_threes<Block, 0>(s, 0, nullptr, nullptr, dx);
      }
    }
  }

  // Windows side by side. Positions behind the last window get 0.
  template <int Block>
  static void side_by_side_backward(const MaxPoolShape& s, const T* dy, const std::uint8_t* index, T* dx) {
    using L = BlockLanes<Block>;
    using V = Vector<L::kWidth>;
    const V zero = broadcast<L::kWidth>(0);
    for (std::int64_t row = 0; row < s.in_d * s.in_h; ++row, dx += s.in_w * Block) {
      const std::int64_t d = row / s.in_h, h = row % s.in_h, od = d / s.kernel_d, oh = h / s.kernel_h;
      const std::int64_t from = (od * s.out_h + oh) * s.out_w, windows = od < s.out_d && oh < s.out_h ? s.out_w : 0;
      const auto first = static_cast<float>((d % s.kernel_d * s.kernel_h + h % s.kernel_h) * s.kernel_w);
      std::int64_t w = 0;
      for (std::int64_t o = from; o < from + windows; ++o) {
        const V at = L::load(index + o * Block), gradient = L::load(dy + o * Block);
        for (std::int64_t c = 0; c < s.kernel_w && w < s.in_w; ++c, ++w) {
          const float p = first + static_cast<float>(c);
          L::store(dx + w * Block,
                   zero + each([p](NativeF32 u, NativeF32 v) { return u == p ? v : NativeF32{}; }, at, gradient));
        }
      }
      for (; w < s.in_w; ++w) L::store(dx + w * Block, zero);
    }
  }

  template <int Block>
  static void backward_of(const MaxPoolShape& s, const T* dy, const std::uint8_t* index, T* dx) {
    s.stride_w == s.kernel_w ? side_by_side_backward<Block>(s, dy, index, dx)
                             : blocked_backward<Block>(s, dy, index, dx);
  }

  // Row h of the image takes from row h / 2 of the windows where their position is in row h % 2.
  static void plain_backward(const MaxPoolShape& s, const T* dy, const std::uint8_t* index, T* dx) {
    for (std::int64_t h = 0; h < s.in_h; ++h, dx += s.in_w) {
      const std::int64_t columns = h / 2 < s.out_h ? s.in_w : 0;
      const T* d = dy + h / 2 * s.out_w;
      const std::uint8_t* at = index + h / 2 * s.out_w;
      const float left = static_cast<float>(h % 2 * 2);
      for (std::int64_t w = 0; w < s.in_w; w += 2 * kLanes) {
        const std::int64_t windows = columns == 0 ? 0 : s.out_w - w / 2 < kLanes ? s.out_w - w / 2 : kLanes;
        const Lanes gradient = load(d + w / 2, windows > 0 ? windows : 0);
        const Lanes position = load(at + w / 2, windows > 0 ? windows : 0);
        const auto where = [&](float p) {
          return each([p](NativeF32 u, NativeF32 v) { return u == p ? v : NativeF32{}; }, position, gradient);
        };
        const TwoLanes both = zip(broadcast(0) + where(left), broadcast(0) + where(left + 1));
        const std::int64_t room = s.in_w - w;
        store(dx + w, both.first, room < kLanes ? room : kLanes);
        if (room > kLanes) store(dx + w + kLanes, both.second, room < 2 * kLanes ? room - kLanes : kLanes);
      }
    }
  }

  static void backward(const MaxPoolShape& s, const T* dy, const std::uint8_t* index, T* dx) {
    if (s.block == 1) return plain_backward(s, dy, index, dx);
    if (s.block == 8) return backward_of<8>(s, dy, index, dx);
    backward_of<16>(s, dy, index, dx);
  }

  static constexpr MaxPoolTable<T> table{forward, backward};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
