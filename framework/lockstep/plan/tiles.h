// Small matrices, on the calling thread: an update may run on one that must not enter OpenMP.
#pragma once

#include <cstdint>

namespace lockstep::plan {

// [rows][columns] as [columns][rows], both multiples of 4: floats, or pairs of halves (2 columns of T each).
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const T* source, T* result);
// [rows][columns] as [rows / 2][columns][2]; columns a multiple of 8.
void interleave_rows(std::int64_t rows, std::int64_t columns, const std::uint16_t* source, std::uint16_t* result);
// To the upper halves of floats, to nearest even.
void round_to_bf16(std::int64_t n, const float* source, std::uint16_t* result);

}  // namespace lockstep::plan
