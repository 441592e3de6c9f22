// Convolutions with a filter per channel, on blocks of channels: the lanes of x and w meet one by one.
#pragma once

#include "lockstep/kernels/native/levels/blocked_product.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

constexpr int kDepthwiseRows = 8;  // more chains than it takes to hide a multiply-add

// One register's lanes from `lane` on.
template <int Rows>
[[gnu::noinline]] void depthwise_tile(const BlockedTable::Product& p, std::int64_t row, std::int64_t lane) {
  const float* const x = p.x + row * p.x_row + lane;
  float* const y = p.y + row * p.y_row + lane;
  NativeF32 sums[Rows];
#pragma GCC unroll 8
  for (int t = 0; t < Rows; ++t) sums[t] = p.add ? load_native(y + t * p.y_row) : NativeF32{};
  for (std::int64_t n = 0; n < p.count; ++n) {
    const float* const from = x + p.terms[n].x;
    const NativeF32 weight = load_native(p.w + p.terms[n].w + lane);
#pragma GCC unroll 8
    for (int t = 0; t < Rows; ++t) sums[t] = multiply_add(load_native(from + t * p.x_row), weight, sums[t]);
  }
  const float* const addend = p.addend != nullptr ? p.addend + row * p.y_row + lane : nullptr;
#pragma GCC unroll 8
  for (int t = 0; t < Rows; ++t) {
    NativeF32 sum = sums[t];
    if (p.bias != nullptr) sum += load_native(p.bias + lane);
    if (addend != nullptr) sum += load_native(addend + t * p.y_row);
    if (p.relu) sum = sum < 0 ? NativeF32{} : sum;
    store_native(y + t * p.y_row, sum);
  }
}

void depthwise_product(const BlockedTable::Product& p) {
  in_blocks<kDepthwiseRows>(p.rows, [&p](std::int64_t row, auto rows) {
    for (int lane = 0; lane < kLanes; lane += kNative) depthwise_tile<rows.value>(p, row, lane);
  });
}

// Positions in turn belong to four chains, which are added at the end.
void depthwise_outer(const BlockedTable::Outer& p) {
  constexpr int kParts = 4;
  for (int lane = 0; lane < kLanes; lane += kNative) {
    NativeF32 sums[kParts] = {};
    for (std::int64_t n = 0; n < p.count; ++n) {
      const float *x = p.x + p.terms[n].x + lane, *dy = p.dy + p.terms[n].w + lane;
      std::int64_t position = 0;
      for (; position + kParts <= p.positions; position += kParts) {
#pragma GCC unroll 4
        for (int c = 0; c < kParts; ++c, x += p.x_step, dy += kLanes)
          sums[c] = multiply_add(load_native(x), load_native(dy), sums[c]);
      }
#pragma GCC unroll 4
      for (int c = 0; c < kParts; ++c, ++position, x += p.x_step, dy += kLanes) {
        if (position < p.positions) sums[c] = multiply_add(load_native(x), load_native(dy), sums[c]);
      }
    }
    const NativeF32 total = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    store_native(p.dw + lane, p.add ? load_native(p.dw + lane) + total : total);
  }
}

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
