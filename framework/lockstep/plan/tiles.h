// Transposition and conversion of small matrices on the calling thread, as the thread of an update may not use OpenMP.
#pragma once

#include <cstdint>

namespace lockstep::plan {

// Writes [rows][columns] as [columns][rows]. Both are multiples of 4; T is float, or a pair of 16-bit values.
template <class T>
void transpose(std::int64_t rows, std::int64_t columns, const T* source, T* result);
// Writes [rows][columns] as [rows / 2][columns][2]; columns is a multiple of 8.
void interleave_rows(std::int64_t rows, std::int64_t columns, const std::uint16_t* source, std::uint16_t* result);
// Rounds floats to bf16, to nearest even.
void round_to_bf16(std::int64_t n, const float* source, std::uint16_t* result);

}  // namespace lockstep::plan
