// Products of bf16 numbers in pairs, and what attention does around them, for table.cpp: AVX-512 BF16 and AMX. Each
// function that needs them names its instructions, as they do not belong to the level. (AMX's intrinsics are macros of
// the compiler.)
#pragma once

#include "lockstep/kernels/native/levels/attention_memory.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

#if defined(__AVX512F__)
#define LOCKSTEP_PAIRS [[gnu::target("avx512bf16")]]
#define LOCKSTEP_TILES [[gnu::target("amx-tile,amx-bf16")]]

constexpr std::int64_t kHalf = kPanel / 2;     // lanes of a register
constexpr std::int64_t kPairRow = 2 * kPanel;  // elements of two rows of a panel

struct alignas(64) TileShapes {  // what LDTILECFG reads: eight tiles of 16 rows of 64 bytes
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr TileShapes kTileShapes{};

LOCKSTEP_TILES void tiles_start() { _tile_loadconfig(&kTileShapes); }
LOCKSTEP_TILES void tiles_stop() { _tile_release(); }

// Blocks of 32 rows and a panel: the sums are tiles 0 to 3, two tiles of a are 4 and 5, two of b 6 and 7.
template <bool Add>
LOCKSTEP_TILES void tile_product(const PairTable::Rows& p) {
  const std::int64_t a_bytes = p.a_stride * 2, c_bytes = p.c_stride * 4, b_bytes = kPairRow * 2;
  for (std::int64_t panel = 0; panel < p.panels; ++panel) {
    const Bf16* const b = p.b + panel * p.depth * kPanel;
    for (std::int64_t row = 0; row < p.rows; row += kPanel) {
      float *const c = p.c + row * p.c_stride + panel * kPanel, *const below = c + kHalf * p.c_stride;
      if constexpr (Add) {
        _tile_loadd(0, c, c_bytes);
        _tile_loadd(1, c + kHalf, c_bytes);
        _tile_loadd(2, below, c_bytes);
        _tile_loadd(3, below + kHalf, c_bytes);
      } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
      }
      const Bf16* const a = p.a + row * p.a_stride;
      for (std::int64_t k = 0; k < p.depth; k += kPanel) {
        _tile_loadd(4, a + k, a_bytes);
        _tile_loadd(6, b + k * kPanel, b_bytes);
        _tile_loadd(7, b + k * kPanel + kPanel, b_bytes);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(5, a + kHalf * p.a_stride + k, a_bytes);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
      _tile_stored(0, c, c_bytes);
      _tile_stored(1, c + kHalf, c_bytes);
      _tile_stored(2, below, c_bytes);
      _tile_stored(3, below + kHalf, c_bytes);
    }
  }
}

void dots_start() {}
void dots_stop() {}

template <bool Add>
LOCKSTEP_PAIRS void dot_product(const PairTable::Rows& p) {
  constexpr std::int64_t kRows = 8;
  for (std::int64_t panel = 0; panel < p.panels; ++panel) {
    const Bf16* const b = p.b + panel * p.depth * kPanel;
    for (std::int64_t row = 0; row < p.rows; row += kRows) {
      const Bf16* const a = p.a + row * p.a_stride;
      float* const c = p.c + row * p.c_stride + panel * kPanel;
      __m512 sums[kRows][2];
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sums[r][0] = Add ? _mm512_loadu_ps(c + r * p.c_stride) : _mm512_setzero_ps();
        sums[r][1] = Add ? _mm512_loadu_ps(c + r * p.c_stride + kHalf) : _mm512_setzero_ps();
      }
      for (std::int64_t k = 0; k < p.depth; k += 2) {
        const auto low = (__m512bh)_mm512_loadu_si512(b + k * kPanel);
        const auto high = (__m512bh)_mm512_loadu_si512(b + k * kPanel + kPanel);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          std::int32_t pair;
          __builtin_memcpy(&pair, a + r * p.a_stride + k, sizeof pair);
          const auto value = (__m512bh)_mm512_set1_epi32(pair);
          sums[r][0] = _mm512_dpbf16_ps(sums[r][0], value, low);
          sums[r][1] = _mm512_dpbf16_ps(sums[r][1], value, high);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        _mm512_storeu_ps(c + r * p.c_stride, sums[r][0]);
        _mm512_storeu_ps(c + r * p.c_stride + kHalf, sums[r][1]);
      }
    }
  }
}

LOCKSTEP_INLINE __mmask32 first_halves(std::int64_t count) {
  return count >= kPanel ? ~__mmask32{} : static_cast<__mmask32>((1U << (count < 0 ? 0 : count)) - 1);
}

void pairs_copy_bf16(const PairMemoryTable::Copy<Bf16>& m) {
  for (std::int64_t r = 0; r < m.padded_rows; ++r) {
    for (std::int64_t c = 0; c < m.to_stride; c += kPanel) {
      const __mmask32 there = r < m.rows ? first_halves(m.columns - c) : 0;
      _mm512_storeu_si512(m.to + r * m.to_stride + c, _mm512_maskz_loadu_epi16(there, m.from + r * m.from_stride + c));
    }
  }
}
LOCKSTEP_PAIRS void pairs_copy_f32(const PairMemoryTable::Copy<float>& m) {
  for (std::int64_t r = 0; r < m.padded_rows; ++r) {
    for (std::int64_t c = 0; c < m.to_stride; c += kHalf) {
      const std::int64_t left = r < m.rows ? m.columns - c : 0;
      const __mmask16 there = left >= kHalf ? __mmask16{0xffff} : first_lanes(left < 0 ? 0 : left);
      const __m512 x = _mm512_maskz_loadu_ps(there, m.from + r * m.from_stride + c);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(m.to + r * m.to_stride + c), (__m256i)_mm512_cvtneps_pbh(x));
    }
  }
}

LOCKSTEP_INLINE __m512i widened_half(const Bf16* p) {
  return _mm512_maskz_cvtepu16_epi32(0xffff, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
void pairs_transpose(const PairMemoryTable::Matrix& m) {
  for (std::int64_t c = 0; c < m.columns; c += kHalf) {
    for (std::int64_t r = 0; r < m.rows; r += kPanel) {
      NativeF32 rows[kNative];
#pragma GCC unroll 16
      for (int i = 0; i < kNative; ++i) {
        const Bf16* const from = m.from + (r + 2 * i) * m.from_stride + c;
        const NativeU32 low = (NativeU32)widened_half(from), high = (NativeU32)widened_half(from + m.from_stride);
        rows[i] = (NativeF32)(low | (high << 16));
      }
      transpose_square(rows);
#pragma GCC unroll 16
      for (int i = 0; i < kNative; ++i) _mm512_storeu_ps(m.to + (c + i) * m.to_stride + r, (__m512)rows[i]);
    }
  }
}

void pairs_lanes(const PairMemoryTable::Matrix& m) {
  for (std::int64_t r = 0; r < m.rows; r += kPanel) {
    for (std::int64_t half = 0; half < kPanel; half += kHalf) {
      for (std::int64_t c = 0; c < m.columns; c += kPanel) {
        NativeF32 rows[kNative];
#pragma GCC unroll 16
        for (int i = 0; i < kNative; ++i)
          rows[i] = (NativeF32)_mm512_loadu_ps(m.from + (r + half + i) * m.from_stride + c);
        transpose_square(rows);
        Bf16* const to = m.to + r * m.columns + c * kPanel + 2 * half;
#pragma GCC unroll 16
        for (int i = 0; i < kNative; ++i) _mm512_storeu_ps(to + i * kPairRow, (__m512)rows[i]);
      }
    }
  }
}

// Which elements of two registers, the second's counted from 32 on, stand in the first or second half of their pairs.
struct alignas(64) PairIndex {
  constexpr explicit PairIndex(int first, int second) {
    for (int i = 0; i < kHalf; ++i) {
      index[2 * i] = static_cast<std::uint16_t>(first + i);
      index[2 * i + 1] = static_cast<std::uint16_t>(second + i);
    }
  }
  std::uint16_t index[kPanel] = {};
};
constexpr PairIndex kLowPairs(0, kPanel), kHighPairs(kHalf, kPanel + kHalf), kHalvesPaired(0, kHalf);

void pairs_pairs(const PairMemoryTable::Matrix& m) {
  const __m512i low = _mm512_load_si512(kLowPairs.index), high = _mm512_load_si512(kHighPairs.index);
  for (std::int64_t r = 0; r < m.rows; r += 2) {
    for (std::int64_t c = 0; c < m.columns; c += kPanel) {
      const Bf16* const from = m.from + r * m.from_stride + c;
      const __m512i first = _mm512_loadu_si512(from), second = _mm512_loadu_si512(from + m.from_stride);
      Bf16* const to = m.to + c * m.rows + r * kPanel;
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(first, low, second));
      _mm512_storeu_si512(to + kPanel, _mm512_permutex2var_epi16(first, high, second));
    }
  }
}

LOCKSTEP_PAIRS void pairs_store(const PairMemoryTable::Out& o) {
  const __m512 factor = _mm512_set1_ps(o.factor);
  for (std::int64_t r = 0; r < o.rows; ++r) {
    for (std::int64_t c = 0; c < o.columns; c += kPanel) {
      const float* const from = o.from + r * o.from_stride + c;
      const __m512 low = _mm512_mul_ps(_mm512_loadu_ps(from), factor);
      const __m512 high = _mm512_mul_ps(_mm512_loadu_ps(from + kHalf), factor);
      _mm512_mask_storeu_epi16(o.to + r * o.to_stride + c, first_halves(o.columns - c),
                               (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
  }
}

LOCKSTEP_PAIRS void pairs_dots(std::int64_t rows, std::int64_t columns, const Bf16* a, const Bf16* b,
                               std::int64_t stride, float* y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    __m512 sum = _mm512_setzero_ps();
    for (std::int64_t c = r * stride; c < r * stride + columns; c += kPanel)
      sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_loadu_si512(a + c), (__m512bh)_mm512_loadu_si512(b + c));
    float lanes[kNative];
    _mm512_storeu_ps(lanes, sum);
    for (int width = kNative / 2; width > 0; width /= 2) {
      for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    }
    y[r] = lanes[0];
  }
}

// 2^x within 1e-7 of it for x up to 127, 0 below -125: 2^r from Chebyshev's interpolation, times 2^n. No result is
// subnormal, which would take the processor a hundred cycles.
LOCKSTEP_INLINE __m512 power_of_two(__m512 x) {
  const __m512 least = _mm512_set1_ps(-125.0F);
  const __mmask16 counts = _mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ);
  x = _mm512_maskz_max_ps(0xffff, least, x);  // the second of two, where one is NaN
  const __m512 n = _mm512_maskz_roundscale_ps(0xffff, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 r = _mm512_sub_ps(x, n);
  __m512 q = _mm512_set1_ps(0.0013390863364520437F);
  for (const float c : {0.009676031918328313F, 0.05550357114219526F, 0.24022107485308156F, 0.6931471880262282F, 1.0F})
    q = _mm512_fmadd_ps(q, r, _mm512_set1_ps(c));
  return _mm512_maskz_scalef_ps(counts, q, n);
}
constexpr float kLog2OfE = 0x1.715476p+0F;

// Two rows of lanes as pairs.
LOCKSTEP_PAIRS LOCKSTEP_INLINE void store_pairs(Bf16* to, __m512 first, __m512 second) {
  const auto halves = (__m512i)_mm512_cvtne2ps_pbh(second, first);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi16(_mm512_load_si512(kHalvesPaired.index), halves));
}

LOCKSTEP_PAIRS void pairs_softmax(const PairAttentionTable::Softmax& s) {
  const __m512 lowest = _mm512_set1_ps(kMinusInfinity), scale = _mm512_set1_ps(s.scale);
  const __m512 to_two = _mm512_set1_ps(s.scale * kLog2OfE);
  for (std::int64_t first = 0; first < kPanel; first += kHalf) {
    const float* const x = s.x + first;
    __m512 largest[2] = {lowest, lowest};
    for (std::int64_t k = 0; k < s.keys; k += 2) {
      largest[0] = _mm512_maskz_max_ps(0xffff, largest[0], _mm512_loadu_ps(x + k * kPanel));
      largest[1] = _mm512_maskz_max_ps(0xffff, largest[1], _mm512_loadu_ps(x + (k + 1) * kPanel));
    }
    const __m512 before = _mm512_loadu_ps(s.top + first);
    const __m512 here = _mm512_mul_ps(_mm512_maskz_max_ps(0xffff, largest[0], largest[1]), scale);
    const __m512 top = _mm512_maskz_max_ps(0xffff, before, here);
    const __mmask16 seen = _mm512_cmp_ps_mask(top, lowest, _CMP_NEQ_UQ);
    const __m512 shift = _mm512_maskz_mul_ps(seen, top, _mm512_set1_ps(kLog2OfE));
    const __m512 factor = power_of_two(_mm512_fmsub_ps(before, _mm512_set1_ps(kLog2OfE), shift));
    __m512 sum[2] = {_mm512_mul_ps(_mm512_loadu_ps(s.sum + first), factor), _mm512_setzero_ps()};
#pragma GCC unroll 2
    for (std::int64_t k = 0; k < s.keys; k += 2) {
      const __m512 even = power_of_two(_mm512_fmsub_ps(_mm512_loadu_ps(x + k * kPanel), to_two, shift));
      const __m512 odd = power_of_two(_mm512_fmsub_ps(_mm512_loadu_ps(x + (k + 1) * kPanel), to_two, shift));
      sum[0] = _mm512_add_ps(sum[0], even);
      sum[1] = _mm512_add_ps(sum[1], odd);
      store_pairs(s.p + k * kPanel + 2 * first, even, odd);
    }
    _mm512_storeu_ps(s.top + first, top);
    _mm512_storeu_ps(s.sum + first, _mm512_add_ps(sum[0], sum[1]));
    _mm512_storeu_ps(s.factor + first, factor);
  }
}

LOCKSTEP_PAIRS void pairs_slopes(const PairAttentionTable::Slopes& s) {
  const __m512 to_two = _mm512_set1_ps(s.scale * kLog2OfE), two = _mm512_set1_ps(kLog2OfE);
  __m512 shift[2], delta[2];
  for (int h = 0; h < 2; ++h) {
    const __m512 logs = _mm512_loadu_ps(s.log_sums + h * kHalf);
    const __mmask16 seen = _mm512_cmp_ps_mask(logs, _mm512_set1_ps(kMinusInfinity), _CMP_NEQ_UQ);
    shift[h] = _mm512_maskz_mul_ps(seen, logs, two);
    delta[h] = _mm512_loadu_ps(s.delta + h * kHalf);
  }
  for (std::int64_t k = 0; k < s.keys; k += 2) {
    __m512 p[2][2], ds[2][2];  // [row][half]
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const std::int64_t at = (k + r) * kPanel + h * kHalf;
        p[r][h] = power_of_two(_mm512_fmsub_ps(_mm512_loadu_ps(s.x + at), to_two, shift[h]));
        ds[r][h] = _mm512_mul_ps(p[r][h], _mm512_sub_ps(_mm512_loadu_ps(s.dp + at), delta[h]));
      }
      _mm512_storeu_si512(s.p_rows + (k + r) * s.stride, (__m512i)_mm512_cvtne2ps_pbh(p[r][1], p[r][0]));
      _mm512_storeu_si512(s.ds_rows + (k + r) * s.stride, (__m512i)_mm512_cvtne2ps_pbh(ds[r][1], ds[r][0]));
    }
    store_pairs(s.ds_pairs + k * kPanel, ds[0][0], ds[1][0]);
    store_pairs(s.ds_pairs + k * kPanel + kPanel, ds[0][1], ds[1][1]);
  }
}

LOCKSTEP_PAIRS void pairs_pack(std::int64_t rows, const float* x, Bf16* by_rows, std::int64_t stride, Bf16* pairs) {
  for (std::int64_t k = 0; k < rows; k += 2) {
    __m512 v[2][2];
#pragma GCC unroll 2
    for (int r = 0; r < 2; ++r) {
      v[r][0] = _mm512_loadu_ps(x + (k + r) * kPanel);
      v[r][1] = _mm512_loadu_ps(x + (k + r) * kPanel + kHalf);
      if (by_rows) _mm512_storeu_si512(by_rows + (k + r) * stride, (__m512i)_mm512_cvtne2ps_pbh(v[r][1], v[r][0]));
    }
    if (!pairs) continue;
    store_pairs(pairs + k * kPanel, v[0][0], v[1][0]);
    store_pairs(pairs + k * kPanel + kPanel, v[0][1], v[1][1]);
  }
}

#undef LOCKSTEP_PAIRS
#undef LOCKSTEP_TILES

constexpr PairTable kPairTiles{
    .start = tiles_start, .stop = tiles_stop, .add = tile_product<true>, .set = tile_product<false>};
constexpr PairTable kPairDots{
    .start = dots_start, .stop = dots_stop, .add = dot_product<true>, .set = dot_product<false>};
constexpr PairMemoryTable kPairMemory{.copy_bf16 = pairs_copy_bf16,
                                      .copy_f32 = pairs_copy_f32,
                                      .transpose = pairs_transpose,
                                      .lanes = pairs_lanes,
                                      .pairs = pairs_pairs,
                                      .store = pairs_store,
                                      .dots = pairs_dots};
constexpr PairAttentionTable kPairAttention{.softmax = pairs_softmax, .slopes = pairs_slopes, .pack = pairs_pack};
#else
constexpr PairTable kPairTiles{}, kPairDots{};
constexpr PairMemoryTable kPairMemory{};
constexpr PairAttentionTable kPairAttention{};
#endif

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
