#include "lockstep/onnx/c/c_helpers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {
namespace {

struct Helper {
  std::string_view name;
  std::vector<std::string_view> needs;
  std::string_view text;
};

constexpr std::string_view kConvolution = R"(
/* Axes are depth, height, width; those that an image lacks have one element. */
typedef struct {
  long channels, outputs, groups, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
} convolution;
)";

// Patches of LANES positions lie beside each other, so that each product of a filter takes the same weight for all.
constexpr std::string_view kConvolve = R"(
static void gather_patches(real *patch, const real *x, const convolution *c, long channels, long first, long count) {
  const long positions = c->out[1] * c->out[2];
  long base[LANES][3], l, i = 0, ch, d, h, w;
  for (l = 0; l < LANES; ++l) {
    const long p = first + (l < count ? l : 0);
    base[l][0] = p / positions * c->stride[0] - c->padding[0];
    base[l][1] = p / c->out[2] % c->out[1] * c->stride[1] - c->padding[1];
    base[l][2] = p % c->out[2] * c->stride[2] - c->padding[2];
  }
  for (ch = 0; ch < channels; ++ch) {
    const real *const image = x + ch * c->in[0] * c->in[1] * c->in[2];
    for (d = 0; d < c->kernel[0]; ++d) {
      for (h = 0; h < c->kernel[1]; ++h) {
        for (w = 0; w < c->kernel[2]; ++w, ++i) {
          for (l = 0; l < LANES; ++l) {
            const long z = base[l][0] + d * c->dilation[0], y = base[l][1] + h * c->dilation[1];
            const long at = base[l][2] + w * c->dilation[2];
            const int inside = z >= 0 && z < c->in[0] && y >= 0 && y < c->in[1] && at >= 0 && at < c->in[2];
            patch[i * LANES + l] = inside ? image[(z * c->in[1] + y) * c->in[2] + at] : 0;
          }
        }
      }
    }
  }
}

static void convolve(real *y, const real *x, const real *weight, const real *bias, real *patch, const convolution *c) {
  const long channels = c->channels / c->groups, outputs = c->outputs / c->groups;
  const long positions = c->out[0] * c->out[1] * c->out[2], pixels = c->in[0] * c->in[1] * c->in[2];
  const long depth = channels * c->kernel[0] * c->kernel[1] * c->kernel[2];
  long g, p, o, q, i, l;
  for (g = 0; g < c->groups; ++g) {
    for (p = 0; p < positions; p += LANES) {
      const long count = positions - p < LANES ? positions - p : LANES;
      gather_patches(patch, x + g * channels * pixels, c, channels, p, count);
      for (o = 0; o < outputs; o += ROWS) {
        const long rows = outputs - o < ROWS ? outputs - o : ROWS;
        real sum[ROWS][LANES];
        const real *w[ROWS];
        for (q = 0; q < ROWS; ++q) {
          const long filter = g * outputs + o + (q < rows ? q : 0);
          w[q] = weight + filter * depth;
          for (l = 0; l < LANES; ++l) sum[q][l] = bias ? bias[filter] : 0;
        }
        for (i = 0; i < depth; ++i) {
          for (q = 0; q < ROWS; ++q) {
            for (l = 0; l < LANES; ++l) sum[q][l] += w[q][i] * patch[i * LANES + l];
          }
        }
        for (q = 0; q < rows; ++q) {
          real *const row = y + (g * outputs + o + q) * positions + p;
          for (l = 0; l < count; ++l) row[l] = sum[q][l];
        }
      }
    }
  }
}
)";

// x here is the value that is spread, so `in` and `channels` are those of the result.
constexpr std::string_view kSpread = R"(
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

constexpr std::string_view kPool = R"(
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
      real best = 0;
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

constexpr std::string_view kResample = R"(
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

constexpr std::string_view kLinear = R"(
/* y (rows, outputs) = x (rows, inputs) w^T + bias; sums have LANES parts. */
static void linear(real *y, const real *x, const real *w, const real *bias, long rows, long outputs, long inputs) {
  const long whole = inputs - inputs % LANES;
  long r, o, q, i, l;
  for (r = 0; r < rows; ++r, x += inputs, y += outputs) {
    for (o = 0; o < outputs; o += ROWS) {
      const long count = outputs - o < ROWS ? outputs - o : ROWS;
      real sum[ROWS][LANES] = {{0}};
      const real *row[ROWS];
      for (q = 0; q < ROWS; ++q) row[q] = w + (o + (q < count ? q : 0)) * inputs;
      for (i = 0; i < whole; i += LANES) {
        for (q = 0; q < ROWS; ++q) {
          for (l = 0; l < LANES; ++l) sum[q][l] += x[i + l] * row[q][i + l];
        }
      }
      for (q = 0; q < count; ++q) {
        real total = 0;
        for (l = 0; l < LANES; ++l) total += sum[q][l];
        for (i = whole; i < inputs; ++i) total += x[i] * row[q][i];
        y[o + q] = total + (bias ? bias[o + q] : 0);
      }
    }
  }
}
)";

constexpr std::string_view kMultiply = R"(
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

constexpr std::string_view kTakeRows = R"(
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

constexpr std::string_view kLstm = R"(
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

constexpr std::string_view kGru = R"(
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

constexpr std::string_view kNormalise = R"(
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

constexpr std::string_view kScaleChannels = R"(
static void scale_channels(real *y, const real *x, const real *gamma, const real *beta, const real *mean,
                           const real *variance, long channels, long spatial, real epsilon) {
  long c, i;
  for (c = 0; c < channels; ++c, x += spatial, y += spatial) {
    const real scale = gamma[c] / SQRT(variance[c] + epsilon), shift = beta[c] - mean[c] * scale;
    for (i = 0; i < spatial; ++i) y[i] = x[i] * scale + shift;
  }
}
)";

constexpr std::string_view kSoftmax = R"(
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

constexpr std::string_view kReduce = R"(
/* kind: 0 sum, 1 mean, 2 greatest, 3 least, 4 logarithm of the sum of exponentials. */
static void reduce(real *y, const real *x, long outer, long count, long inner, int kind) {
  long o, k, i;
  for (o = 0; o < outer; ++o, x += count * inner) {
    for (k = 0; k < inner; ++k) {
      double sum = 0;
      real best = x[k];
      for (i = 1; kind > 1 && i < count; ++i) {
        const real value = x[i * inner + k];
        if (kind == 3 ? value < best : value > best) best = value;
      }
      for (i = 0; kind != 2 && kind != 3 && i < count; ++i)
        sum += kind == 4 ? exp((double)x[i * inner + k] - best) : (double)x[i * inner + k];
      *y++ = (real)(kind == 4 ? best + log(sum) : kind > 1 ? best : kind == 1 ? sum / (double)count : sum);
    }
  }
}
)";

// `TYPE` stands for the type of the elements.
constexpr std::string_view kMove = R"(
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

constexpr std::string_view kTakeAlong = R"(
static void take_along(real *y, const real *x, long outer, long in, long out, long inner, const long *from) {
  long o, i;
  for (o = 0; o < outer; ++o) {
    for (i = 0; i < out; ++i) memcpy(y + (o * out + i) * inner, x + (o * in + from[i]) * inner, (size_t)inner * sizeof(real));
  }
}
)";

constexpr std::string_view kSigmoid = "static real sigmoid(real x) { return 1 / (1 + EXP(-x)); }\n";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

const std::vector<Helper>& helpers() {
  static const std::string reals = replaced(replaced(std::string(kMove), "NAME", "move"), "TYPE", "real");
  static const std::string wholes = replaced(replaced(std::string(kMove), "NAME", "move_ids"), "TYPE", "int32_t");
  static const std::vector<Helper> all{
      {"sigmoid", {}, kSigmoid},
      {"convolution", {}, kConvolution},
      {"convolve", {"convolution"}, kConvolve},
      {"spread", {"convolution"}, kSpread},
      {"pool", {"convolution"}, kPool},
      {"resample", {}, kResample},
      {"linear", {}, kLinear},
      {"multiply", {"linear"}, kMultiply},
      {"take_rows", {}, kTakeRows},
      {"lstm", {"linear", "sigmoid"}, kLstm},
      {"gru", {"linear", "sigmoid"}, kGru},
      {"normalise", {}, kNormalise},
      {"scale_channels", {}, kScaleChannels},
      {"softmax", {}, kSoftmax},
      {"reduce", {}, kReduce},
      {"move", {}, reals},
      {"move_ids", {}, wholes},
      {"take_along", {}, kTakeAlong},
  };
  return all;
}

}  // namespace

std::string c_helpers(const std::set<std::string>& names) {
  std::set<std::string> needed;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(helpers(), name, &Helper::name);
    check(found != helpers().end(), kSite, "there is no helper {}", name);
    needed.insert(name);
    needed.insert(found->needs.begin(), found->needs.end());
  }
  std::string text;
  for (const Helper& helper : helpers()) {
    if (needed.contains(std::string(helper.name))) text += helper.text;
  }
  return text;
}

}  // namespace lockstep::onnx
