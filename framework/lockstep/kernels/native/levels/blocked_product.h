// The micro-kernels of blocked_tables.h. A tile of sums stays in registers: rows (or inputs) by kTileRegisters
// registers of outputs. The number of rows is known at compile time; what is left of a call is divided evenly.
#pragma once

#include "lockstep/kernels/native/levels/convolution.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

#if defined(__FMA__) || defined(__FP_FAST_FMAF)
constexpr int kBlockedRows = kRegisters / 2 - 2, kBlockedInputs = kRegisters == 32 ? 8 : 6;  // by two registers
#else
constexpr int kBlockedRows = 2, kBlockedInputs = 2;  // multiply-adds that are emulated take most registers
#endif
// Registers of a tile: those of the two vectors where a vector is one register, else two of one vector.
constexpr int kTileRegisters = 2;

#if defined(__x86_64__) && defined(__AVX2__)
LOCKSTEP_INLINE void prefetch_written(const float* p) { asm volatile("prefetchw %0" : : "m"(*p)); }
#else
LOCKSTEP_INLINE void prefetch_written(const float* p) { __builtin_prefetch(p, 1, 3); }
#endif
LOCKSTEP_INLINE void prefetch_second_level(const float* p) { __builtin_prefetch(p, 0, 2); }

// What a call fetches ahead, in equal parts, one before each of its tiles. No tile divides: some processors take as
// long for that as for a small tile.
class BlockedAheads {
 public:
  BlockedAheads(const BlockedAhead& read, const BlockedAhead& write, std::int64_t tiles)
      : read_(read), write_(write), read_lines_(part(read, tiles)), write_lines_(part(write, tiles)) {}
  LOCKSTEP_INLINE void fetch() {
    for (std::int64_t i = 0; i < read_lines_ && read_.lines > 0; ++i, --read_.lines, read_.at += kLanes)
      prefetch_second_level(read_.at);
    for (std::int64_t i = 0; i < write_lines_ && write_.lines > 0; ++i, --write_.lines, write_.at += kLanes)
      prefetch_written(write_.at);
  }

 private:
  static std::int64_t part(const BlockedAhead& ahead, std::int64_t tiles) {
    return ahead.lines == 0 || tiles == 0 ? 0 : (ahead.lines + tiles - 1) / tiles;
  }
  BlockedAhead read_, write_;
  std::int64_t read_lines_, write_lines_;
};

// The offset of register r of a tile, in elements; those of a second vector are `vector` behind the first one's.
LOCKSTEP_INLINE constexpr std::int64_t register_offset(int r, std::int64_t vector) {
  return kNatives == 1 ? r * vector : r * kNative;
}

template <int Rows, int Registers>
LOCKSTEP_INLINE void blocked_epilogue(const BlockedTable::Product& p, NativeF32 (&sums)[Rows][Registers],
                                      const float* y, std::int64_t lane) {
  const float* const addend = p.addend != nullptr ? p.addend + (y - p.y) : nullptr;
#pragma GCC unroll 14
  for (int t = 0; t < Rows; ++t) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r) {
      NativeF32& sum = sums[t][r];
      if (p.bias != nullptr) sum += load_native(p.bias + lane + register_offset(r, kLanes));
      if (addend != nullptr) sum += load_native(addend + t * p.y_row + register_offset(r, p.y_vector));
      if (p.relu) sum = sum < 0 ? NativeF32{} : sum;
    }
  }
}

// Row: the distance of rows of x, 0: p.x_row; from 16 on, terms have 16 inputs, else p.inputs. `x` and `y` are those of
// the tile's first row.
template <int Rows, int Registers, int Row>
[[gnu::noinline]] void blocked_product_tile(const BlockedTable::Product& p, const float* x, const float* w, float* y,
                                            std::int64_t lane) {
  const std::int64_t x_row = Row != 0 ? Row : p.x_row;
  const int inputs = Row >= kLanes ? kLanes : static_cast<int>(p.inputs);
  NativeF32 sums[Rows][Registers];
#pragma GCC unroll 14
  for (int t = 0; t < Rows; ++t) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r)
      sums[t][r] = p.add ? load_native(y + t * p.y_row + register_offset(r, p.y_vector)) : NativeF32{};
  }
  for (std::int64_t n = 0; n < p.count; ++n) {
    const float *from = x + p.terms[n].x, *weights = w + p.terms[n].w;
    // Of the next term, or of the next tile's first one: rows that a processor's own prefetcher does not foresee.
    const float* const ahead = n + 1 < p.count ? x + p.terms[n + 1].x : x + p.terms[0].x + Rows * x_row;
#pragma GCC unroll 2
    for (int i = 0; i < inputs; ++i) {
      if constexpr (Row >= kLanes) __builtin_prefetch(ahead + i * x_row, 0, 3);
      NativeF32 weight[Registers];
#pragma GCC unroll 2
      for (int r = 0; r < Registers; ++r)
        weight[r] = load_native(weights + i * kLanes + register_offset(r, p.w_vector));
#pragma GCC unroll 14
      for (int t = 0; t < Rows; ++t) {
        NativeF32 value = broadcast_native(from + t * x_row + i);
        if constexpr (Registers > 1) keep_in_register(value);
#pragma GCC unroll 2
        for (int r = 0; r < Registers; ++r) sums[t][r] = multiply_add(value, weight[r], sums[t][r]);
      }
    }
  }
  if (p.bias != nullptr || p.addend != nullptr || p.relu) blocked_epilogue(p, sums, y, lane);
#pragma GCC unroll 14
  for (int t = 0; t < Rows; ++t) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r) store_native(y + t * p.y_row + register_offset(r, p.y_vector), sums[t][r]);
  }
}

template <int Registers, int Row>
LOCKSTEP_INLINE void blocked_product_rows(const BlockedTable::Product& p) {
  const std::int64_t vectors = kNatives == 1 ? 1 : p.vectors, parts = kNatives == 1 ? 1 : kNatives / kTileRegisters;
  const std::int64_t row_tiles = (p.rows + kBlockedRows - 1) / kBlockedRows;
  BlockedAheads aheads{p.read, p.write, row_tiles * vectors * parts};
  for (std::int64_t v = 0; v < vectors; ++v) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t lane = part * kTileRegisters * kNative;
      const float* const w = p.w + v * p.w_vector + lane;
      float* const y = p.y + v * p.y_vector + lane;
      in_blocks<kBlockedRows>(p.rows, [&, w, y](std::int64_t row, auto rows) {
        aheads.fetch();
        blocked_product_tile<rows.value, Registers, Row>(p, p.x + row * p.x_row, w, y + row * p.y_row,
                                                         v * kLanes + lane);
      });
    }
  }
}

template <int Registers>
void blocked_product_of(const BlockedTable::Product& p) {
  const bool whole = p.inputs == kLanes;
  if (p.x_row == 1) {
    blocked_product_rows<Registers, 1>(p);
  } else if (p.x_row == 2) {
    blocked_product_rows<Registers, 2>(p);
  } else if (whole && p.x_row == kLanes) {
    blocked_product_rows<Registers, kLanes>(p);
  } else if (whole && p.x_row == 2 * kLanes) {
    blocked_product_rows<Registers, 2 * kLanes>(p);
  } else {
    blocked_product_rows<Registers, 0>(p);
  }
}

void blocked_product(const BlockedTable::Product& p) {
  if (kNatives == 1 && p.vectors == 1) {
    blocked_product_of<1>(p);
  } else {
    blocked_product_of<kTileRegisters>(p);
  }
}

// `x`, `dy` and `dw` are those of the tile's first input.
template <int Inputs, int Registers>
[[gnu::noinline]] void blocked_outer_tile(const BlockedTable::Outer& p, const float* x, const float* dy, float* dw) {
  NativeF32 sums[Inputs][Registers];
#pragma GCC unroll 8
  for (int i = 0; i < Inputs; ++i) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r)
      sums[i][r] = p.add ? load_native(dw + i * kLanes + register_offset(r, p.dw_vector)) : NativeF32{};
  }
  for (std::int64_t n = 0; n < p.count; ++n) {
    const float *from = x + p.terms[n].x, *slopes = dy + p.terms[n].w;
#pragma GCC unroll 2
    for (std::int64_t position = 0; position < p.positions; ++position, from += p.x_step, slopes += kLanes) {
      NativeF32 slope[Registers];
#pragma GCC unroll 2
      for (int r = 0; r < Registers; ++r) slope[r] = load_native(slopes + register_offset(r, p.dy_vector));
#pragma GCC unroll 8
      for (int i = 0; i < Inputs; ++i) {
        NativeF32 value = broadcast_native(from + i);
        if constexpr (Registers > 1) keep_in_register(value);
#pragma GCC unroll 2
        for (int r = 0; r < Registers; ++r) sums[i][r] = multiply_add(value, slope[r], sums[i][r]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Inputs; ++i) {
#pragma GCC unroll 2
    for (int r = 0; r < Registers; ++r) store_native(dw + i * kLanes + register_offset(r, p.dw_vector), sums[i][r]);
  }
}

template <int Registers>
void blocked_outer_of(const BlockedTable::Outer& p) {
  const std::int64_t vectors = kNatives == 1 ? 1 : p.vectors, parts = kNatives == 1 ? 1 : kNatives / kTileRegisters;
  const std::int64_t input_tiles = (p.inputs + kBlockedInputs - 1) / kBlockedInputs;
  BlockedAheads aheads{p.read, p.write, input_tiles * vectors * parts};
  for (std::int64_t v = 0; v < vectors; ++v) {
    for (std::int64_t part = 0; part < parts; ++part) {
      const std::int64_t lane = part * kTileRegisters * kNative;
      const float* const dy = p.dy + v * p.dy_vector + lane;
      float* const dw = p.dw + v * p.dw_vector + lane;
      in_blocks<kBlockedInputs>(p.inputs, [&, dy, dw](std::int64_t input, auto inputs) {
        aheads.fetch();
        blocked_outer_tile<inputs.value, Registers>(p, p.x + input, dy, dw + input * kLanes);
      });
    }
  }
}

void blocked_outer(const BlockedTable::Outer& p) {
  if (kNatives == 1 && p.vectors == 1) {
    blocked_outer_of<1>(p);
  } else {
    blocked_outer_of<kTileRegisters>(p);
  }
}

void blocked_sum(std::int64_t positions, const float* x, double* sums) {
  for (std::int64_t first = 0; first < positions; first += kFold) {
    const std::int64_t last = first + kFold < positions ? first + kFold : positions;
    Lanes sum = load(x + first * kLanes);
    for (std::int64_t p = first + 1; p < last; ++p) sum = sum + load(x + p * kLanes);
    add_to(sums, sum);
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
