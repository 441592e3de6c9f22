// Micro-kernels on blocks of 16 channels, which convolutions in blocked layouts are made of; part of tables.h, and
// data only like it. Lanes are output channels. Each element of a result adds its products in an order that the
// arguments fix, by fused multiply-adds: levels and the division into calls change no bit.
#pragma once

#include <cstdint>

namespace lockstep::kernels::native {

// Memory that is going to be used, fetched a little before each tile of a call is worked out.
struct BlockedAhead {
  const float* at = nullptr;
  std::int64_t lines = 0;  // cache lines of 64 bytes
};

struct BlockedTable {
  // Where a block of 16 inputs begins, in elements: in x (of the first row or position) and in w or dy.
  struct Term {
    std::int64_t x, w;
  };

  // y [rows][vectors][16] = sum over `count` terms t and inputs i of x[t.x + row * x_row + i] w[t.w + i * 16 + lane]:
  // in order of terms, then of inputs. A vector is 16 outputs; the second one's weights lie w_vector, its results
  // y_vector elements behind the first one's.
  struct Product {
    std::int64_t rows, vectors;  // vectors: 1 or 2; two take less time than two calls
    const Term* terms;
    std::int64_t count;
    const float* x;
    std::int64_t x_row;  // 16 and 32 are the fast ones
    const float* w;
    std::int64_t w_vector;
    float* y;
    std::int64_t y_row, y_vector;
    bool add = false;               // the sums begin with what y holds, so that a sum may be cut into calls
    const float* bias = nullptr;    // [vectors][16], added to the sum
    const float* addend = nullptr;  // laid out as y, and may be y; added after the bias
    bool relu = false;              // at the end; a NaN stays
    std::int64_t inputs = 16;       // of each term
    BlockedAhead read = {};         // into the second-level cache
    BlockedAhead write = {};        // into the first-level cache, to be written
  };

  // dw [vectors][16][16] = sum over `count` terms t and positions p of x[t.x + p * x_step + i] dy[t.w + p * 16 + lane]:
  // in order of terms, then of positions. The second vector's dy and dw lie dy_vector and dw_vector elements behind the
  // first one's.
  struct Outer {
    std::int64_t positions, vectors;  // vectors: 1 or 2
    std::int64_t inputs;              // 1 to 16; of further inputs, dw is not written and x not read
    const Term* terms;
    std::int64_t count;
    const float* x;
    std::int64_t x_step;
    const float* dy;
    std::int64_t dy_vector;
    float* dw;
    std::int64_t dw_vector;
    bool add = false;
    BlockedAhead read = {}, write = {};
  };

  void (*product)(const Product&);
  void (*outer)(const Outer&);
  // One vector, with a filter per channel: of lanes, x[t.x + row * x_row + lane] w[t.w + lane] and x[t.x + p * x_step +
  // lane] dy[t.w + p * 16 + lane]. Every fourth position of a term belongs to one of four sums, which are then added.
  void (*depthwise_product)(const Product&);
  void (*depthwise_outer)(const Outer&);
  void (*sum)(std::int64_t positions, const float* x, double* sums);  // sums [16] += x [positions][16]
};

}  // namespace lockstep::kernels::native
