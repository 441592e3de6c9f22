// The C text of helpers for products, rows of tables and recurrent layers.
#pragma once

#include <string_view>

namespace lockstep::onnx {

// Sums that are held in registers: as vectors of GNU C where the compiler has them, else as arrays.
inline constexpr std::string_view kLanes = R"(
#if defined(__GNUC__)
typedef real lanes __attribute__((vector_size(LANES * sizeof(real))));
#define SET(sum, value) (sum) = (lanes){0} + (value)
#define ADD(sum, factor, from) \
  do { \
    lanes x_; \
    memcpy(&x_, (from), sizeof x_); \
    (sum) += (factor) * x_; \
  } while (0)
#define ADD_PRODUCTS(sum, x, from) \
  do { \
    lanes x_; \
    memcpy(&x_, (from), sizeof x_); \
    (sum) += (x) * x_; \
  } while (0)
#else
typedef struct {
  real l[LANES];
} lanes;
#define SET(sum, value) \
  do { \
    int l_; \
    for (l_ = 0; l_ < LANES; ++l_) (sum).l[l_] = (value); \
  } while (0)
#define ADD(sum, factor, from) \
  do { \
    int l_; \
    for (l_ = 0; l_ < LANES; ++l_) (sum).l[l_] += (factor) * (from)[l_]; \
  } while (0)
#define ADD_PRODUCTS(sum, x, from) \
  do { \
    int l_; \
    for (l_ = 0; l_ < LANES; ++l_) (sum).l[l_] += (x).l[l_] * (from)[l_]; \
  } while (0)
#endif
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
)";

inline constexpr std::string_view kLinear = R"(
/* y (rows, outputs) = x (rows, inputs) w^T + bias; sums have LANES parts. */
static void linear(real *y, const real *x, const real *w, const real *bias, long rows, long outputs, long inputs) {
  const long whole = inputs - inputs % LANES;
  long r, o, q, i, l;
  for (r = 0; r < rows; ++r, x += inputs, y += outputs) {
    for (o = 0; o < outputs; o += ROWS) {
      const long count = outputs - o < ROWS ? outputs - o : ROWS;
      real parts[LANES];
#define BEGIN(q) \
  const real *const w##q = w + (o + (q < count ? q : 0)) * inputs; \
  lanes sum##q;
      EACH_ROW(BEGIN)
#define FIRST(q) SET(sum##q, 0);
      EACH_ROW(FIRST)
      for (i = 0; i < whole; i += LANES) {
        lanes part;
        memcpy(&part, x + i, sizeof part);
#define NEXT(q) ADD_PRODUCTS(sum##q, part, w##q + i);
        EACH_ROW(NEXT)
      }
      for (q = 0; q < count; ++q) {
        const real *const row = w + (o + q) * inputs;
        real total = 0;
#define STORE(r) \
  if (q == r) memcpy(parts, &sum##r, sizeof parts);
        EACH_ROW(STORE)
        for (l = 0; l < LANES; ++l) total += parts[l];
        for (i = whole; i < inputs; ++i) total += x[i] * row[i];
        y[o + q] = total + (bias ? bias[o + q] : 0);
      }
#undef BEGIN
#undef FIRST
#undef NEXT
#undef STORE
    }
  }
}
)";

inline constexpr std::string_view kMultiply = R"(
/* y (m, n) = op(a) (m, k) op(b) (k, n). */
static void multiply(real *y, const real *a, const real *b, long m, long n, long k, int a_transposed, int b_transposed) {
  long i, j, l;
  if (!a_transposed && b_transposed) {
    linear(y, a, b, NULL, m, n, k);
    return;
  }
  for (i = 0; i < m; ++i, y += n) {
    for (j = 0; j < n; ++j) y[j] = 0;
    for (l = 0; l < k; ++l) {
      const real factor = a_transposed ? a[l * m + i] : a[i * k + l];
      if (b_transposed) {
        for (j = 0; j < n; ++j) y[j] += factor * b[j * k + l];
      } else {
        for (j = 0; j < n; ++j) y[j] += factor * b[l * n + j];
      }
    }
  }
}
)";

inline constexpr std::string_view kTakeRows = R"(
/* Copies rows by their numbers; 0 is returned for a number that is no row. */
static int take_rows(real *y, const real *x, const int32_t *ids, long outer, long count, long rows, long width) {
  long o, i;
  for (i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= rows) return 0;
  }
  for (o = 0; o < outer; ++o) {
    for (i = 0; i < count; ++i, y += width) memcpy(y, x + (o * rows + ids[i]) * width, (size_t)width * sizeof(real));
  }
  return 1;
}
)";

inline constexpr std::string_view kLstm = R"(
/* One direction of an LSTM: sums has the products of the inputs, gates i f g o; y takes h after each step. */
static void lstm(real *y, long stride, real *h, real *c, const real *sums, const real *weight, real *gates, long steps,
                 long hidden, int reverse) {
  long s, i;
  for (s = 0; s < steps; ++s) {
    const long t = reverse ? steps - 1 - s : s;
    linear(gates, h, weight, sums + t * 4 * hidden, 1, 4 * hidden, hidden);
    for (i = 0; i < hidden; ++i) {
      const real in = sigmoid(gates[i]), forget = sigmoid(gates[hidden + i]), out = sigmoid(gates[3 * hidden + i]);
      c[i] = forget * c[i] + in * TANH(gates[2 * hidden + i]);
      h[i] = out * TANH(c[i]);
      y[t * stride + i] = h[i];
    }
  }
}
)";

inline constexpr std::string_view kGru = R"(
/* One direction of a GRU, gates r z n. */
static void gru(real *y, long stride, real *h, const real *sums, const real *weight, const real *bias, real *gates,
                long steps, long hidden, int reverse) {
  long s, i;
  for (s = 0; s < steps; ++s) {
    const long t = reverse ? steps - 1 - s : s;
    const real *const x = sums + t * 3 * hidden;
    linear(gates, h, weight, bias, 1, 3 * hidden, hidden);
    for (i = 0; i < hidden; ++i) {
      const real r = sigmoid(x[i] + gates[i]), z = sigmoid(x[hidden + i] + gates[hidden + i]);
      const real n = TANH(x[2 * hidden + i] + r * gates[2 * hidden + i]);
      h[i] = (1 - z) * n + z * h[i];
      y[t * stride + i] = h[i];
    }
  }
}
)";

}  // namespace lockstep::onnx
