// Winograd's transforms on images, for winograd_tables.h; winograd_points.h has the formulas.
#pragma once

#include "lockstep/kernels/native/levels/attention_memory.h"
#include "lockstep/kernels/native/levels/convolution.h"
#include "lockstep/kernels/native/levels/winograd_points.h"

// A tile stays in registers only where its indices are known at compile time.
#define LOCKSTEP_INLINE_LAMBDA __attribute__((always_inline))

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

template <class F>
struct Winograd {
  static constexpr int kSize = F::kSize, kPlanes = F::kPlanes;
  using V = NativeF32;

  // Where a tile lies: the sample's image, and the tile's first row and column without padding.
  struct Place {
    std::int64_t sample, row, column;
  };
  // Calls body(t, place) for each tile.
  template <class Body>
  LOCKSTEP_INLINE static void for_tiles(const WinogradTiles& s, Body body) {
    std::int64_t column = s.begin % s.columns, row = s.begin / s.columns % s.rows;
    std::int64_t sample = s.begin / s.columns / s.rows;
    for (std::int64_t t = 0; t < s.count; ++t) {
      body(t, Place{sample, row * kSize, column * kSize});
      if (++column < s.columns) continue;
      column = 0;
      if (++row < s.rows) continue;
      row = 0;
      ++sample;
    }
  }

  // The function of a value of the input: the value itself, or its batch norm with a ReLU, with the
  // roundings of levels/batch_norm.h.
  struct AsItIs {
    LOCKSTEP_INLINE V operator()(V x) const { return x; }
  };
  struct Normalised {
    V mean, scale, shift;
    LOCKSTEP_INLINE V operator()(V x) const {
      const V y = (x - mean) * scale + shift;
      return y < 0 ? V{} : y;
    }
  };

  // An input's tile: rows and columns outside the image are 0, and are not read.
  template <class T, class Value>
  LOCKSTEP_INLINE static void input_tile(const WinogradTiles& s, const T* image, std::int64_t top, std::int64_t left,
                                         Value value, float* v) {
    V tile[kPlanes][kPlanes];
    const auto column = [&](int j, auto inside) LOCKSTEP_INLINE_LAMBDA {
      V x[kPlanes], y[kPlanes];
#pragma GCC unroll 6
      for (int i = 0; i < kPlanes; ++i) {
        const bool there = inside.value != 0 || (top + i >= 0 && top + i < s.height);
        x[i] = there ? value(load_native(image + ((top + i) * s.width + left + j) * kLanes)) : V{};
      }
      F::input(x, y);
#pragma GCC unroll 6
      for (int i = 0; i < kPlanes; ++i) tile[i][j] = y[i];
    };
    if (top >= 0 && left >= 0 && top + kPlanes <= s.height && left + kPlanes <= s.width) {
#pragma GCC unroll 6
      for (int j = 0; j < kPlanes; ++j) column(j, Number<1>{});
    } else {
#pragma GCC unroll 6
      for (int j = 0; j < kPlanes; ++j) {
        if (left + j >= 0 && left + j < s.width) {
          column(j, Number<0>{});
        } else {
#pragma GCC unroll 6
          for (int i = 0; i < kPlanes; ++i) tile[i][j] = V{};
        }
      }
    }
#pragma GCC unroll 6
    for (int i = 0; i < kPlanes; ++i) {
      V y[kPlanes];
      F::input(tile[i], y);
#pragma GCC unroll 6
      for (int j = 0; j < kPlanes; ++j) store_native(v + (i * kPlanes + j) * s.plane, y[j]);
    }
  }

  template <class T, class Value>
  LOCKSTEP_INLINE static void input_lanes(const WinogradTiles& s, const T* x, Value value, float* v) {
    for_tiles(s, [&](std::int64_t t, Place p) LOCKSTEP_INLINE_LAMBDA {
      input_tile(s, x + p.sample * s.sample, p.row - s.padding_h, p.column - s.padding_w, value, v + t * kLanes);
    });
  }

  static void input(const WinogradTiles& s, const float* x, const NormaliseLanes* norm, float* v) {
    for (int lane = 0; lane < kLanes; lane += kNative) {
      if (norm == nullptr) {
        input_lanes(s, x + lane, AsItIs{}, v + lane);
      } else {
        const Normalised value{load_native(norm->mean + lane), load_native(norm->scale + lane),
                               load_native(norm->shift + lane)};
        input_lanes(s, x + lane, value, v + lane);
      }
    }
  }

  static void input_bf16(const WinogradTiles& s, const Bf16* x, float* v) {
    for (int lane = 0; lane < kLanes; lane += kNative) input_lanes(s, x + lane, AsItIs{}, v + lane);
  }

  LOCKSTEP_INLINE static void output_tile(const WinogradTiles& s, const float* m, V (*y)[kSize]) {
    V tile[kSize][kPlanes];
#pragma GCC unroll 6
    for (int j = 0; j < kPlanes; ++j) {
      V x[kPlanes], column[kSize];
#pragma GCC unroll 6
      for (int i = 0; i < kPlanes; ++i) x[i] = load_native(m + (i * kPlanes + j) * s.plane);
      F::output(x, column);
#pragma GCC unroll 4
      for (int i = 0; i < kSize; ++i) tile[i][j] = column[i];
    }
#pragma GCC unroll 4
    for (int i = 0; i < kSize; ++i) F::output(tile[i], y[i]);
  }

  static void output(const WinogradTiles& s, const float* m, const WinogradTable::Output& o, float* y) {
    for (int lane = 0; lane < kLanes; lane += kNative) {
      const V bias = o.bias != nullptr ? load_native(o.bias + lane) : V{};
      for_tiles(s, [&](std::int64_t t, Place p) LOCKSTEP_INLINE_LAMBDA {
        const std::int64_t first = p.sample * s.sample + (p.row * s.width + p.column) * kLanes + lane;
        V tile[kSize][kSize];
        output_tile(s, m + t * kLanes + lane, tile);
        const auto put = [&](int i, int j) LOCKSTEP_INLINE_LAMBDA {
          const std::int64_t at = first + (i * s.width + j) * kLanes;
          V value = tile[i][j] + bias;
          if (o.addend != nullptr) value += load_native(o.addend + at);
          if (o.relu) value = value < 0 ? V{} : value;
          store_native(y + at, value);
        };
        if (p.row + kSize <= s.height && p.column + kSize <= s.width) {
#pragma GCC unroll 4
          for (int i = 0; i < kSize; ++i) {
#pragma GCC unroll 4
            for (int j = 0; j < kSize; ++j) put(i, j);
          }
        } else {
#pragma GCC unroll 4
          for (int i = 0; i < kSize; ++i) {
#pragma GCC unroll 4
            for (int j = 0; j < kSize; ++j) {
              if (p.row + i < s.height && p.column + j < s.width) put(i, j);
            }
          }
        }
      });
    }
  }

  template <class T>
  static void slopes(const WinogradTiles& s, const T* dy, float* z) {
    for (int lane = 0; lane < kLanes; lane += kNative) {
      for_tiles(s, [&](std::int64_t t, Place p) LOCKSTEP_INLINE_LAMBDA {
        const T* const first = dy + p.sample * s.sample + (p.row * s.width + p.column) * kLanes + lane;
        V tile[kPlanes][kSize];
        const auto column = [&](int j, auto inside) LOCKSTEP_INLINE_LAMBDA {
          V y[kSize], transformed[kPlanes];
#pragma GCC unroll 4
          for (int i = 0; i < kSize; ++i) {
            const bool there = inside.value != 0 || p.row + i < s.height;
            y[i] = there ? load_native(first + (i * s.width + j) * kLanes) : V{};
          }
          F::slopes(y, transformed);
#pragma GCC unroll 6
          for (int i = 0; i < kPlanes; ++i) tile[i][j] = transformed[i];
        };
        if (p.row + kSize <= s.height && p.column + kSize <= s.width) {
#pragma GCC unroll 4
          for (int j = 0; j < kSize; ++j) column(j, Number<1>{});
        } else {
#pragma GCC unroll 4
          for (int j = 0; j < kSize; ++j) {
            if (p.column + j < s.width) {
              column(j, Number<0>{});
            } else {
#pragma GCC unroll 6
              for (int i = 0; i < kPlanes; ++i) tile[i][j] = V{};
            }
          }
        }
#pragma GCC unroll 6
        for (int i = 0; i < kPlanes; ++i) {
          V row[kPlanes];
          F::slopes(tile[i], row);
#pragma GCC unroll 6
          for (int j = 0; j < kPlanes; ++j) store_native(z + t * kLanes + lane + (i * kPlanes + j) * s.plane, row[j]);
        }
      });
    }
  }

  // One register of weights: taps are a block apart.
  LOCKSTEP_INLINE static void weights_of(const float* w, float* u, std::int64_t plane) {
    V tile[kPlanes][3];
#pragma GCC unroll 3
    for (int j = 0; j < 3; ++j) {
      V g[3], column[kPlanes];
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) g[i] = load_native(w + (i * 3 + j) * kLanes * kLanes);
      F::weights(g, column);
#pragma GCC unroll 6
      for (int i = 0; i < kPlanes; ++i) tile[i][j] = column[i];
    }
#pragma GCC unroll 6
    for (int i = 0; i < kPlanes; ++i) {
      V row[kPlanes];
      F::weights(tile[i], row);
#pragma GCC unroll 6
      for (int j = 0; j < kPlanes; ++j) store_native(u + (i * kPlanes + j) * plane, row[j]);
    }
  }

  // to = from, transposed, both [16][16].
  LOCKSTEP_INLINE static void turn_block(const float* from, float* to) {
    for (int r = 0; r < kLanes; r += kNative) {
      for (int c = 0; c < kLanes; c += kNative) {
        V rows[kNative];
#pragma GCC unroll 16
        for (int i = 0; i < kNative; ++i) rows[i] = load_native(from + (r + i) * kLanes + c);
        transpose_square(rows);
#pragma GCC unroll 16
        for (int i = 0; i < kNative; ++i) store_native(to + (c + i) * kLanes + r, rows[i]);
      }
    }
  }

  static void weights(const float* w, bool turned, float* u, std::int64_t plane) {
    constexpr int kBlock = kLanes * kLanes, kTaps = 9;
    alignas(64) float other[kTaps * kBlock];
    if (turned) {
      for (int tap = 0; tap < kTaps; ++tap) turn_block(w + tap * kBlock, other + (kTaps - 1 - tap) * kBlock);
      w = other;
    }
    for (int i = 0; i < kBlock; i += kNative) weights_of(w + i, u + i, plane);
  }

  static void gradient(const float* u, std::int64_t plane, bool add, float* dw) {
    constexpr int kBlock = kLanes * kLanes;
    for (int at = 0; at < kBlock; at += kNative) {
      V tile[3][kPlanes];
#pragma GCC unroll 6
      for (int j = 0; j < kPlanes; ++j) {
        V x[kPlanes], column[3];
#pragma GCC unroll 6
        for (int i = 0; i < kPlanes; ++i) x[i] = load_native(u + at + (i * kPlanes + j) * plane);
        F::gradient(x, column);
#pragma GCC unroll 3
        for (int i = 0; i < 3; ++i) tile[i][j] = column[i];
      }
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) {
        V row[3];
        F::gradient(tile[i], row);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
          float* const to = dw + (i * 3 + j) * kBlock + at;
          store_native(to, add ? load_native(to) + row[j] : row[j]);
        }
      }
    }
  }

  static constexpr WinogradTable table{.input = input,
                                       .input_bf16 = input_bf16,
                                       .output = output,
                                       .slopes = slopes<float>,
                                       .slopes_bf16 = slopes<Bf16>,
                                       .weights = weights,
                                       .gradient = gradient};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
