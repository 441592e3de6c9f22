// The C text of helpers for normalisations, reductions, and elements in other places.
#pragma once

#include <string_view>

namespace lockstep::onnx {

inline constexpr std::string_view kNormalise = R"(
/* Rows less their mean (if centred), divided by the root of variance and epsilon. A row has `channels` channels of
 * `spatial` elements, each with its weight and bias, which begin anew after `groups` rows. */
static void normalise(real *y, const real *x, const real *weight, const real *bias, long rows, long channels,
                      long spatial, long groups, int centred, real epsilon) {
  const long size = channels * spatial;
  long r, i;
  for (r = 0; r < rows; ++r, x += size, y += size) {
    const long first = r % groups * channels;
    double mean = 0, square = 0;
    real inverse;
    for (i = 0; centred && i < size; ++i) mean += x[i];
    mean /= (double)size;
    for (i = 0; i < size; ++i) square += (x[i] - mean) * (x[i] - mean);
    inverse = (real)(1 / sqrt(square / (double)size + epsilon));
    for (i = 0; i < size; ++i) {
      const long at = first + i / spatial;
      y[i] = (x[i] - (real)mean) * inverse * (weight ? weight[at] : 1) + (bias ? bias[at] : 0);
    }
  }
}
)";

inline constexpr std::string_view kScaleChannels = R"(
static void scale_channels(real *y, const real *x, const real *gamma, const real *beta, const real *mean,
                           const real *variance, long images, long channels, long spatial, real epsilon) {
  long n, c, i;
  for (n = 0; n < images; ++n) {
    for (c = 0; c < channels; ++c, x += spatial, y += spatial) {
      const real scale = gamma[c] / SQRT(variance[c] + epsilon);
      for (i = 0; i < spatial; ++i) y[i] = (x[i] - mean[c]) * scale + beta[c];
    }
  }
}
)";

inline constexpr std::string_view kSoftmax = R"(
static void softmax(real *y, const real *x, long outer, long count, long inner) {
  long o, k, i;
  for (o = 0; o < outer; ++o, x += count * inner, y += count * inner) {
    for (k = 0; k < inner; ++k) {
      real most = x[k], sum = 0;
      for (i = 1; i < count; ++i) most = x[i * inner + k] > most ? x[i * inner + k] : most;
      for (i = 0; i < count; ++i) sum += y[i * inner + k] = EXP(x[i * inner + k] - most);
      for (i = 0; i < count; ++i) y[i * inner + k] /= sum;
    }
  }
}
)";

inline constexpr std::string_view kReduce = R"(
/* kind: 0 sum, 1 mean, 2 greatest, 3 least, 4 logarithm of the sum of exponentials. */
static void reduce(real *y, const real *x, long outer, long count, long inner, int kind) {
  long o, k, i;
  for (o = 0; o < outer; ++o, x += count * inner) {
    for (k = 0; k < inner; ++k) {
      double sum = 0;
      real best = x[k];
      for (i = 1; kind > 1 && i < count; ++i) {
        const real value = x[i * inner + k];
        if (value != value || (kind == 3 ? value < best : value > best)) best = value; /* a NaN stays */
      }
      if (kind == 4 && (best == (real)INFINITY || best == -(real)INFINITY)) {
        *y++ = best;
        continue;
      }
      for (i = 0; kind != 2 && kind != 3 && i < count; ++i)
        sum += kind == 4 ? exp((double)x[i * inner + k] - best) : (double)x[i * inner + k];
      *y++ = (real)(kind == 4 ? best + log(sum) : kind > 1 ? best : kind == 1 ? sum / (double)count : sum);
    }
  }
}
)";

// `TYPE` stands for the type of the elements.
inline constexpr std::string_view kMove = R"(
/* Copies elements from their places in x to those in y; strides are per axis, the last one innermost. */
static void NAME(TYPE *y, const TYPE *x, int rank, const long *sizes, const long *to, const long *from) {
  long place[RANKS] = {0}, i;
  int axis;
  for (axis = 0; axis < rank; ++axis) {
    if (sizes[axis] == 0) return;
  }
  for (;;) {
    for (i = 0; i < sizes[rank - 1]; ++i) y[i * to[rank - 1]] = x[i * from[rank - 1]];
    for (axis = rank - 2; axis >= 0; --axis) {
      y += to[axis];
      x += from[axis];
      if (++place[axis] < sizes[axis]) break;
      y -= to[axis] * sizes[axis];
      x -= from[axis] * sizes[axis];
      place[axis] = 0;
    }
    if (axis < 0) return;
  }
}
)";

inline constexpr std::string_view kTakeAlong = R"(
static void take_along(real *y, const real *x, long outer, long in, long out, long inner, const long *from) {
  long o, i;
  for (o = 0; o < outer; ++o) {
    for (i = 0; i < out; ++i) memcpy(y + (o * out + i) * inner, x + (o * in + from[i]) * inner, (size_t)inner * sizeof(real));
  }
}
)";

inline constexpr std::string_view kSigmoid = "static real sigmoid(real x) { return 1 / (1 + EXP(-x)); }\n";

}  // namespace lockstep::onnx
