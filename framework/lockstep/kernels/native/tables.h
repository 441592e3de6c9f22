// The functions of one instruction set level: one table per family, filled in by the sources in levels/. Every function
// is serial, works on the range it is given and allocates nothing; drivers beside this header (batch_norm.h,
// elementwise.h) share the ranges out to threads. This header is compiled into every level, so it holds data only: an
// inline function here would be merged by the linker across levels. The bits of a result do not depend on the level,
// except in products of bf16 pairs (pair_tables.h).
#pragma once

#include <cstdint>

#include "lockstep/kernels/native/blocked_tables.h"
#include "lockstep/kernels/native/matrix_tables.h"
#include "lockstep/kernels/native/pair_tables.h"
#include "lockstep/kernels/native/winograd_tables.h"
#include "lockstep/ops/pointwise/code.h"

namespace lockstep::kernels::native {

// The upper half of a float. Rounding is to nearest even and keeps NaN; arithmetic is in f32.
using Bf16 = std::uint16_t;

inline constexpr int kLanes = 16;  // of every level: narrower machines take several registers

// T is float or double. A primitive of the pointwise algebra on n elements, by code; it reads as many of a, b and c as
// it has operands. y may be one of them, not a shifted one.
template <class T>
struct PointwiseTable {
  using Function = void (*)(std::int64_t n, const T* a, const T* b, const T* c, T* y);
  Function run[pointwise::kCodes];
};

// T is float or Bf16. Arrays hold n elements; an output may be one of the inputs, not a shifted one.
template <class T>
struct ElementwiseTable {
  void (*relu)(std::int64_t n, const T* x, T* y);
  void (*relu_backward)(std::int64_t n, const T* y, const T* dy, T* dx);  // dx = y <= 0 ? 0 : dy
  void (*add)(std::int64_t n, const T* a, const T* b, T* y);
};

// Elements [begin, end) of one channel block, counted over its samples: each has `segment` of them in a row, and the
// next begins `stride` elements later. Pointers that go with a strip point to the block in sample 0. Per-lane arrays
// belong to element % 16; for channel blocks of 1 and 8 they repeat.
struct Strip {
  std::int64_t segment, stride, begin, end;
};

struct alignas(64) NormaliseLanes {
  float mean[kLanes] = {}, scale[kLanes] = {}, shift[kLanes] = {};
};
struct alignas(64) GradientLanes {
  float dy[kLanes] = {}, x[kLanes] = {}, constant[kLanes] = {};
};

template <class T>
struct BatchNormTable {
  struct Normalise {
    const T *x, *residual;  // residual may be null
    T* y;
    bool relu;
  };
  // The ReLU's gradient is masked by y where it is given, else by what normalising x gives, without relu not at all.
  struct Gradient {
    const T *x, *dy, *y;
    const T* addend;  // null, or with `masked` added to dy
    T* dx;
    T* masked;  // null, or gets the masked dy, and then dx is made from it
    bool relu;
  };
  // Adds to sums [2][16]: d and d^2 with d = x - pivot.
  void (*moments)(const Strip&, const T* x, const float* pivot, double* sums);
  // y = [relu]((x - mean) * scale + shift [+ residual]); unless `of_residual` is null, the residual is normalised by
  // it.
  void (*normalise)(const Strip&, const Normalise&, const NormaliseLanes&, const NormaliseLanes* of_residual);
  // Adds to sums [2][16]: g and g * (x - mean), where g is the masked dy, as stored.
  void (*gradient_sums)(const Strip&, const Gradient&, const NormaliseLanes&, double* sums);
  // dx = g * lanes.dy + ((x - mean) * lanes.x + lanes.constant); `masked` was written by gradient_sums.
  void (*gradient)(const Strip&, const Gradient&, const NormaliseLanes&, const GradientLanes&);
};

// Passes over one row of n elements. weight and bias may be null: both, or the bias.
template <class T>
struct RowNormTable {
  struct Forward {
    std::int64_t n;
    const T* x;
    const float *weight, *bias;
    T* y;  // may be x
  };
  // With a weight, dweight gets dy (x - mean) inverse added, and dbias dy, if it is not null.
  struct Backward {
    std::int64_t n;
    const T *x, *dy;
    const float* weight;
    T* dx;  // may be dy
    float *dweight, *dbias;
  };
  struct Factors {
    float mean, inverse, x, constant;
  };
  // sums [2]: of d and d^2 with d = x - pivot.
  void (*moments)(std::int64_t n, const T* x, float pivot, double* sums);
  // y = (x - mean) inverse [weight [+ bias]]
  void (*normalise)(const Forward&, float mean, float inverse);
  // sums [2]: of a = dy [weight] and of a (x - mean).
  void (*gradient_sums)(const Backward&, float mean, double* sums);
  // dx = a inverse + ((x - mean) factors.x + factors.constant)
  void (*gradient)(const Backward&, const Factors&);
};

// Max pooling of one image: `block` channels (1, 8 or 16) side by side, of which `channels` count and the others get 0.
// x, dx [in_d][in_h][in_w][block]; y, index and dy [out_d][out_h][out_w][block]. An image of block 1 has a depth of 1,
// and takes strides along w of 1 and 2.
struct MaxPoolShape {
  std::int64_t block, channels, in_d, in_h, in_w, out_d, out_h, out_w, kernel_d, kernel_h, kernel_w, stride_d, stride_h,
      stride_w, padding_d, padding_h, padding_w, dilation_d, dilation_h, dilation_w;
};
template <class T>
struct MaxPoolTable {
  void (*forward)(const MaxPoolShape&, const T* x, T* y, std::uint8_t* index);
  // Block 1 takes windows of 2 x 2 side by side without padding; 8 and 16 take 3 x 3 at every other position of a depth
  // of 1, and all windows side by side without padding.
  void (*backward)(const MaxPoolShape&, const T* dy, const std::uint8_t* index, T* dx);
};

// Convolutions of plain planes with stride 1, lanes along the rows. Planes lie packed: rows of `stride` elements, the
// padding among them, with slack behind the last row, so that a vector may hang over. Position p of the output reads
// p + row * stride + column. It is worked out in vectors of 16 positions, each beginning at an offset, and lies in a
// buffer of these vectors. Sums are fused multiply-adds.
struct ConvolutionPair {  // of vectors, with the kernel's rows that see the image from there
  std::int64_t first, second, row_begin, row_end;
};
struct ConvolutionTable {
  struct Planes {
    std::int64_t channels, filters, kernel_h, kernel_w, stride, plane;  // plane: elements of a packed plane
  };
  // y [filters][pairs][32] = [relu](bias + sum), w [channels][kernel_h][kernel_w][filters]
  struct Forward {
    Planes planes;
    const ConvolutionPair* pairs;
    std::int64_t count;
    const float *x, *w, *bias;  // bias may be null
    bool relu;
    float* y;
  };
  // Adds to sums [filters][channels][kernel_h][kernel_w][16] and bias_sums [filters][16], lane by lane, the products of
  // x with dy [filters][vectors][16], which holds 0 between rows, of several samples.
  struct Weights {
    Planes planes;
    const std::int64_t* offsets;
    std::int64_t count;
    std::int64_t samples, x_sample, dy_sample;  // and the strides between them
    const float *x, *dy;
    float *sums, *bias_sums;
  };
  // Rows of `width` elements; `zeros` writes sixteen zeros behind each, which the next row may overwrite.
  struct Rows {
    std::int64_t planes, rows, width;
    std::int64_t from_plane, from_row, to_plane, to_row;  // strides
    const float* from;
    float* to;
    bool zeros;
  };
  void (*forward)(const Forward&);
  void (*weights)(const Weights&);
  void (*fold)(std::int64_t n, const float* sums, float* totals);  // totals [n] of sums [n][16], halves onto halves
  void (*copy)(const Rows&);
};

// c [rows][panels * kPanel] += a [rows][depth] b, with the columns of b in panels [panels][depth][kPanel]. Each element
// adds its products in the order of `depth`, by fused multiply-adds; rows of a and c are strides apart.
inline constexpr int kPanel = 32;
struct ProductTable {
  struct Rows {
    std::int64_t rows, depth, panels;
    const float* a;
    std::int64_t a_stride;
    const float* b;
    float* c;
    std::int64_t c_stride;
  };
  void (*add)(const Rows&);
  void (*set)(const Rows&);  // c = a b
};

// Rows of an array, `stride` elements apart.
template <class T>
struct Strided {
  T* data;  // may be null where a comment says so
  std::int64_t stride;
};

// One step of an LSTM or GRU layer for some samples, forward or backward: W_hh's product, and what is made of its sums
// while they are in the first-level cache. Each sum adds its products in order of their index, by fused multiply-adds.
// `own` arrays belong to the caller's loop over the steps: a row has whole panels of kLanes hidden features, or G
// elements of sums. The other arrays are RecurrentOp's, a row is a sample's part of the step; G = gates * hidden.
template <class T>
struct RecurrentTable {
  struct Forward {
    std::int64_t rows, hidden;
    const T* weights;  // [panels][hidden][gates][kLanes], 0 behind the last feature
    const T* bias;     // of W_hh, a GRU's, or null
    Strided<const T> product;
    Strided<T> gates, kept, y;    // gates may be product
    Strided<const T> own_before;  // h before the step; null: 0
    Strided<T> own_after;         // h after it, another array
    Strided<T> own_c;             // an LSTM's c before the step becomes that after it
  };
  // Of the saved arrays c is that before the step and of an LSTM alone, h before it; both null: 0. dy may be null.
  struct Saved {
    Strided<const T> gates, kept, c, h, dy;
  };
  struct Gradients {
    Strided<T> product, hidden, before;  // `hidden` is a GRU's alone; product may be the saved gates
  };
  struct Backward {
    std::int64_t rows, hidden;
    const T* weights;            // [panels of 2 kLanes][G][2 kLanes], 0 behind the last feature
    Strided<const T> own_after;  // gradients of the sums of the step after this one; null: there is none
    Strided<T> own_sums;         // gets those of this step, another array
    Strided<T> own_dh, own_dc;   // in: gradients by the states after the step, but for W_hh's part; out: before it
    Saved saved;                 // gates null: W_hh's part alone is added to dh
    Gradients gradients;
  };
  void (*lstm)(const Forward&);
  void (*gru)(const Forward&);
  void (*lstm_gradient)(const Backward&);
  void (*gru_gradient)(const Backward&);
};

// Attention of kPanel queries at a time, which are the lanes of every array [rows][kPanel]; rows are keys or elements
// of a head. T is float or Bf16.
template <class T>
struct AttentionMemory {
  // to[c * to_stride + r] = scale * from[r * from_stride + c] for r < rows <= kPanel, and 0 for the lanes behind them.
  struct In {
    std::int64_t rows, columns;
    const T* from;
    std::int64_t from_stride;
    float scale;
    float* to;
    std::int64_t to_stride;
  };
  // to[r * to_stride + c] = factors[r] * from[c][r] for r < rows.
  struct Out {
    std::int64_t rows, columns;
    const float *from, *factors;
    T* to;
    std::int64_t to_stride;
  };
  void (*transpose_in)(const In&);
  void (*transpose_out)(const Out&);
  // to = scale * from by rows, in f32; the columns up to the next multiple of kPanel are 0. Panels: those of columns
  // lie behind each other, [columns / kPanel][rows][kPanel], and to_stride is not read.
  void (*copy_in)(const In&);
  void (*copy_panels)(const In&);
  // to[r * to_stride + c] = from[r * from_stride + c].
  void (*copy_out)(std::int64_t rows, std::int64_t columns, const float* from, std::int64_t from_stride, T* to,
                   std::int64_t to_stride);
};

struct AttentionTable {
  // Scores x [keys][kPanel] of the keys from position first_key on, of queries from position first_query on.
  struct Bias {
    std::int64_t keys, first_key, first_query;
    float* x;
    bool causal;
    std::int64_t window;                                // 0: none
    float slope;                                        // 0: none
    const std::int32_t *key_segments, *query_segments;  // [keys], [kPanel]; null: none
  };
  // The running maximum of the scores, and the sum of exp(score - maximum), of each query.
  struct Softmax {
    std::int64_t keys;
    float* x;                   // becomes exp(x - maximum)
    float *top, *sum, *factor;  // [kPanel]; factor: what earlier sums and results are multiplied with
  };
  // Weights 0 or times `kept`, as ops/dropout.h draws them. The weight of row k, lane l is element first + l stride +
  // k.
  struct Drop {
    std::int64_t keys;
    std::uint64_t key, high, first, stride;
    std::uint32_t threshold;  // random numbers of 24 bits below it drop
    float kept;
    const float* x;
    float* y;      // becomes x with dropout; may be x
    float* other;  // null, or becomes itself with dropout
  };
  void (*bias)(const Bias&);  // adds slope |p - s|, and -infinity where a query does not see a key
  void (*softmax)(const Softmax&);
  void (*weights)(std::int64_t keys, float* x, const float* log_sums);  // x = exp(x - log_sums)
  void (*drop)(const Drop&);
  void (*slopes)(std::int64_t keys, const float* p, const float* delta, float* x);  // x = p (x - delta)
  void (*multiply)(std::int64_t rows, const float* factors, float* x);              // x *= factors
  void (*dots)(std::int64_t rows, const float* a, const float* b, float* y);        // y = sum over rows of a b
};

// Logits x [words][kPanel] of kPanel positions, the lanes, for words from first_word on.
struct VocabularyTable {
  struct Scan {
    std::int64_t words, first_word;
    float* x;           // has the bias added
    const float* bias;  // [words], or null
    float *best, *sum;  // [kPanel]: the largest logit so far; the sum of these logits
    std::int32_t* best_word;
  };
  // x = factor (exp(x + bias - log_sum) - spread).
  struct Slopes {
    std::int64_t words;
    float* x;
    const float *bias, *log_sums, *factors;  // bias [words] or null; [kPanel]
    float spread;
  };
  void (*scan)(const Scan&);
  void (*slopes)(const Slopes&);
  // to[r * to_stride + lane] = x[r][lane].
  void (*copy)(std::int64_t words, const float* x, float* to, std::int64_t to_stride);
};

// One axis of a discrete Fourier transform, on lines. Line l = (o, i) with i < inner: its elements, numbers or complex
// numbers (pairs), begin at o * length * inner + i and lie `inner` apart.
enum class FourierLine : std::uint8_t {
  Complex,   // complex to complex, n = plan.length
  ToHalf,    // real to the first half of the spectrum, inner = 1
  FromHalf,  // back; imaginary parts at frequency 0 and n / 2 are not read
};
template <class T>
struct FourierTable {
  // A transform of `length` complex numbers by the radices, whose product it is: roots [length] are e^(s 2 pi i j /
  // length), s the sign of the transform. A real line of n = 2 length elements needs half_roots [length + 1], e^(s 2 pi
  // i j / n).
  struct Plan {
    std::int64_t length, count;
    const std::int64_t* radices;
    const T *roots, *half_roots;  // complex; half_roots null: a real line has `length` elements
  };
  // A side that is shorter than the transform holds its low frequencies: 0, 1, ... and in complex lines the negative
  // ones behind them. Results get the factor `scale`, and ToHalf and FromHalf apply `middle` to the spectrum but for
  // frequency 0 and n / 2.
  struct Pass {
    FourierLine line;
    Plan plan;
    std::int64_t from_length, to_length, inner;
    T scale, middle;
    const T* from;
    T* to;
  };
  // Lines begin to end; scratch holds fourier_scratch(plan.length) elements. `from` and `to` may be the same where the
  // lengths are.
  void (*run)(const Pass&, std::int64_t begin, std::int64_t end, T* scratch);

  // y [n] = sum over `terms` of a [terms][n] b [terms][n], complex numbers, one after the other; terms are strides (in
  // complex numbers) apart. A conjugated factor has its imaginary part negated.
  struct Sum {
    std::int64_t n, terms;
    const T* a;
    std::int64_t a_stride;
    bool conjugate_a;
    const T* b;
    std::int64_t b_stride;
    bool conjugate_b;
    T* y;
  };
  void (*sum)(const Sum&);
};

struct ConvertTable {
  void (*to_bf16)(std::int64_t n, const float* x, Bf16* y);
  void (*to_f32)(std::int64_t n, const Bf16* x, float* y);
};

// Multiply-adds in registers, for measuring what the processor can do: returns how many operations it did, 0 where the
// processor has no such instructions. `out` gets kLanes floats at most, so that none can be left out.
struct PeakTable {
  std::int64_t (*f32)(std::int64_t rounds, float* out);
  std::int64_t (*bf16)(std::int64_t rounds, float* out);  // dot products of pairs
};

}  // namespace lockstep::kernels::native

namespace lockstep::kernels {

struct NativeKernels {
  native::ConvertTable convert;
  native::PointwiseTable<float> pointwise_f32;
  native::PointwiseTable<double> pointwise_f64;
  native::ElementwiseTable<float> elementwise_f32;
  native::ElementwiseTable<native::Bf16> elementwise_bf16;
  native::BatchNormTable<float> batch_norm_f32;
  native::BatchNormTable<native::Bf16> batch_norm_bf16;
  native::RowNormTable<float> row_norm_f32;
  native::RowNormTable<native::Bf16> row_norm_bf16;
  native::ConvolutionTable convolution;
  native::BlockedTable blocked;
  native::WinogradTable winograd2, winograd4;  // by the size of tiles
  native::MaxPoolTable<float> max_pool_f32;
  native::MaxPoolTable<native::Bf16> max_pool_bf16;
  native::PeakTable peak;
  native::RecurrentTable<float> recurrent_f32;
  native::RecurrentTable<double> recurrent_f64;
  native::ProductTable product_f32;
  native::MatrixTable<float> matrix_f32;
  native::MatrixTable<double> matrix_f64;
  native::AttentionTable attention;
  native::AttentionMemory<float> attention_f32;
  native::AttentionMemory<native::Bf16> attention_bf16;
  native::VocabularyTable vocabulary;
  native::PairTable pair_tiles, pair_dots;  // AMX, AVX-512 BF16; pair_table() chooses
  native::PairMemoryTable pair_memory;
  native::PairAttentionTable pair_attention;
  native::FourierTable<float> fourier_f32;
  native::FourierTable<double> fourier_f64;
};

}  // namespace lockstep::kernels
