// The C text of helpers for convolutions, pooling and resampling.
#pragma once

#include <string_view>

namespace lockstep::onnx {

inline constexpr std::string_view kConvolution = R"(
/* Axes are depth, height, width; those that an image lacks have one element. */
typedef struct {
  long channels, outputs, groups, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} convolution;
)";

// Patches of LANES positions lie beside each other, so that each product of a filter takes the same weight for all.
inline constexpr std::string_view kConvolve = R"(
static void gather_patches(real *patch, const real *x, const convolution *c, long channels, long first, long count) {
  const long plane = c->out[1] * c->out[2], pixels = c->in[0] * c->in[1] * c->in[2];
  const long kernel = c->kernel[0] * c->kernel[1] * c->kernel[2];
  long base[LANES][3], at[LANES], l, k, ch;
  for (l = 0; l < LANES; ++l) {
    const long p = first + (l < count ? l : 0);
    base[l][0] = p / plane * c->stride[0] - c->padding[0];
    base[l][1] = p / c->out[2] % c->out[1] * c->stride[1] - c->padding[1];
    base[l][2] = p % c->out[2] * c->stride[2] - c->padding[2];
  }
  for (k = 0; k < kernel; ++k) {
    const long d = k / (c->kernel[1] * c->kernel[2]) * c->dilation[0], h = k / c->kernel[2] % c->kernel[1] * c->dilation[1];
    const long w = k % c->kernel[2] * c->dilation[2];
    int together = 1;
    for (l = 0; l < LANES; ++l) {
      const long z = base[l][0] + d, y = base[l][1] + h, v = base[l][2] + w;
      const int inside = z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1] && v >= 0 && v < c->in[2];
      at[l] = inside ? (z * c->in[1] + y) * c->in[2] + v : -1;
      together = together && at[l] >= 0 && at[l] == at[0] + l;
    }
    for (ch = 0; ch < channels; ++ch) {
      const real *const image = x + ch * pixels;
      real *const row = patch + (ch * kernel + k) * LANES;
      if (together) {
        memcpy(row, image + at[0], LANES * sizeof(real));
      } else {
        for (l = 0; l < LANES; ++l) row[l] = at[l] >= 0 ? image[at[l]] : 0;
      }
    }
  }
}

static void convolve(real *y, const real *x, const real *weight, const real *bias, real *patch, const convolution *c) {
  const long channels = c->channels / c->groups, outputs = c->outputs / c->groups;
  const long positions = c->out[0] * c->out[1] * c->out[2], pixels = c->in[0] * c->in[1] * c->in[2];
  const long depth = channels * c->kernel[0] * c->kernel[1] * c->kernel[2];
  long g, p, o, q, i;
  for (g = 0; g < c->groups; ++g) {
    for (p = 0; p < positions; p += LANES) {
      const long count = positions - p < LANES ? positions - p : LANES;
      gather_patches(patch, x + g * channels * pixels, c, channels, p, count);
      for (o = 0; o < outputs; o += ROWS) {
        const long rows = outputs - o < ROWS ? outputs - o : ROWS;
#define BEGIN(q) \
  const long filter##q = g * outputs + o + (q < rows ? q : 0); \
  const real *const w##q = weight + filter##q * depth; \
  lanes sum##q;
        EACH_ROW(BEGIN)
#define FIRST(q) SET(sum##q, bias ? bias[filter##q] : 0);
        EACH_ROW(FIRST)
        for (i = 0; i < depth; ++i) {
          const real *const column = patch + i * LANES;
#define NEXT(q) ADD(sum##q, w##q[i], column);
          EACH_ROW(NEXT)
        }
        for (q = 0; q < rows; ++q) {
          real *const row = y + (g * outputs + o + q) * positions + p;
#define STORE(r) \
  if (q == r) memcpy(row, &sum##r, (size_t)count * sizeof(real));
          EACH_ROW(STORE)
        }
#undef BEGIN
#undef FIRST
#undef NEXT
#undef STORE
      }
    }
  }
}
)";

// x here is the value that is spread, so `in` and `channels` are those of the result.
inline constexpr std::string_view kSpread = R"(
static void spread(real *y, const real *x, const real *weight, const convolution *c) {
  const long channels = c->channels / c->groups, outputs = c->outputs / c->groups;
  const long positions = c->out[0] * c->out[1] * c->out[2], pixels = c->in[0] * c->in[1] * c->in[2];
  const long kernel = c->kernel[0] * c->kernel[1] * c->kernel[2];
  long o, ch, k, p;
  for (p = 0; p < c->channels * pixels; ++p) y[p] = 0;
  for (o = 0; o < c->outputs; ++o) {
    for (ch = 0; ch < channels; ++ch) {
      real *const image = y + (o / outputs * channels + ch) * pixels;
      for (k = 0; k < kernel; ++k) {
        const real w = weight[(o * channels + ch) * kernel + k];
        const long d = k / (c->kernel[1] * c->kernel[2]) * c->dilation[0] - c->padding[0];
        const long h = k / c->kernel[2] % c->kernel[1] * c->dilation[1] - c->padding[1];
        const long v = k % c->kernel[2] * c->dilation[2] - c->padding[2];
        for (p = 0; p < positions; ++p) {
          const long z = p / (c->out[1] * c->out[2]) * c->stride[0] + d;
          const long r = p / c->out[2] % c->out[1] * c->stride[1] + h, at = p % c->out[2] * c->stride[2] + v;
          if (z >= 0 && z < c->in[0] && r >= 0 && r < c->in[1] && at >= 0 && at < c->in[2])
            image[(z * c->in[1] + r) * c->in[2] + at] += w * x[o * positions + p];
        }
      }
    }
  }
}
)";

inline constexpr std::string_view kPool = R"(
/* The greatest element, or the mean; `counted`: the padding counts as elements, but what lies behind it does not. */
static void pool(real *y, const real *x, int is_mean, int counted, const convolution *c) {
  const long pixels = c->in[0] * c->in[1] * c->in[2], positions = c->out[0] * c->out[1] * c->out[2];
  long ch, p, a, at[3], k[3];
  for (ch = 0; ch < c->channels; ++ch, x += pixels) {
    for (p = 0; p < positions; ++p) {
      const long first[3] = {p / (c->out[1] * c->out[2]) * c->stride[0] - c->padding[0],
                             p / c->out[2] % c->out[1] * c->stride[1] - c->padding[1],
                             p % c->out[2] * c->stride[2] - c->padding[2]};
      long inside = 0, within = 0;
      real best = is_mean ? 0 : -(real)INFINITY;
      for (k[0] = 0; k[0] < c->kernel[0]; ++k[0]) {
        for (k[1] = 0; k[1] < c->kernel[1]; ++k[1]) {
          for (k[2] = 0; k[2] < c->kernel[2]; ++k[2]) {
            int in = 1, near_ = 1;
            for (a = 0; a < 3; ++a) {
              at[a] = first[a] + k[a] * c->dilation[a];
              in = in && at[a] >= 0 && at[a] < c->in[a];
              near_ = near_ && at[a] < c->in[a] + c->padding[a];
            }
            within += near_;
            if (in) {
              const real value = x[(at[0] * c->in[1] + at[1]) * c->in[2] + at[2]];
              if (is_mean) {
                best += value;
              } else if (!inside || value > best || value != value) {
                best = value;
              }
              ++inside;
            }
          }
        }
      }
      *y++ = is_mean ? best / (real)(counted ? within : inside) : best;
    }
  }
}
)";

inline constexpr std::string_view kResample = R"(
/* Along one axis each element of y is a sum of elements of x: those from first[i] to first[i + 1] of both tables. */
static void resample(real *y, const real *x, long outer, long in, long out, long inner, const long *first,
                     const long *from, const real *weight) {
  long o, i, t, k;
  for (o = 0; o < outer; ++o) {
    for (i = 0; i < out; ++i) {
      real *const row = y + (o * out + i) * inner;
      for (k = 0; k < inner; ++k) row[k] = 0;
      for (t = first[i]; t < first[i + 1]; ++t) {
        const real *const source = x + (o * in + from[t]) * inner;
        for (k = 0; k < inner; ++k) row[k] += weight[t] * source[k];
      }
    }
  }
}
)";

}  // namespace lockstep::onnx
