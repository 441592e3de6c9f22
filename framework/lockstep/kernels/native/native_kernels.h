// Vectorised kernels of our own: one source, compiled once per instruction set level and chosen at run time. A new
// family is a table in tables.h, a header in levels/, a member of NativeKernels and its line in levels/table.cpp.
// Levels of x86-64 are "baseline" (what the binary is compiled for), "avx2" (AVX2, FMA) and "avx512" (F, BW, VL,
// DQ); AArch64 has "neon" alone, and other processors "baseline" alone. Functions of all levels give the same bits, but
// for products of bf16 pairs, so the level affects speed alone. Any thread may call these functions.
#pragma once

#include <span>
#include <string_view>

#include "lockstep/kernels/native/tables.h"

namespace lockstep::kernels {

// The table of this process, chosen at the first call: the best level that the processor supports, or the one that the
// environment variable LOCKSTEP_ISA names (baseline, avx2, avx512, neon); a name that is unknown or that this machine
// cannot run throws Error. native_level() is that level's name.
const NativeKernels& native_kernels();
std::string_view native_level();
// Whether that level has fused multiply-adds; they are emulated without.
bool native_fused();
// The products of bf16 pairs of this process: "tiles" (AMX), "dots" (AVX-512 BF16) or "none"; bits in bf16 depend on
// them.
std::string_view native_pairs();

// The table of a level by name, for tests and measurements; null if the processor or the build lacks the level.
const NativeKernels* native_kernels(std::string_view level);

namespace native {
// A compiled level. levels() lists all of them, slowest first (levels_x86.cpp, levels_arm.cpp or levels_other.cpp).
struct Level {
  std::string_view name;
  bool supported;  // by the processor this runs on
  bool fused;      // has fused multiply-adds
  const NativeKernels* kernels;
};
std::span<const Level> levels();

// The products of bf16 pairs of this table that the processor can do, the fastest of them; null: none, and bf16 is
// computed in f32.
const PairTable* pair_table(const NativeKernels& kernels);
}  // namespace native

}  // namespace lockstep::kernels
