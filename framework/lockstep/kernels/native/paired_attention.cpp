#include "lockstep/kernels/native/paired_attention.h"

namespace lockstep::kernels::native {
namespace {

struct ForwardScratch {
  ForwardScratch(const AttentionGeometry& g, float* begin)
      : all(begin), keys(padded_keys(g)), width(rounded_up(g.width, kPanel)) {
    k = take_bf16(all, keys * width);
    v = take_bf16(all, width * keys);
    rows = take_bf16(all, kPanel * width);
    q = take_bf16(all, kPanel * width);
    p = take_bf16(all, kKeyBlock * kPanel);
    scores = all.take(kKeyBlock * kPanel);
    y = all.take(width * kPanel);
    for (float** lanes : {&top, &sum, &factor}) *lanes = all.take(kPanel);
  }
  Scratch all;
  std::int64_t keys, width;   // rounded up
  Bf16 *k, *v;                // [keys][width], [width][keys]
  Bf16 *rows, *q, *p;         // [kPanel][width], [width / 2][kPanel][2], [kKeyBlock / 2][kPanel][2]
  float *scores, *y;          // [kKeyBlock][kPanel], [width][kPanel]
  float *top, *sum, *factor;  // [kPanel]
};

class Forward {
 public:
  Forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<Bf16>& arrays,
          const NativeKernels& kernels)
      : g_(g), run_(run), a_(arrays), k_(kernels), pairs_(*pair_table(kernels)) {}
  const PairTable& pairs() const { return pairs_; }

  void load_keys(std::int64_t n, std::int64_t group, const ForwardScratch& s) const {
    const std::int64_t first = n * g_.keys * g_.key_stride() + group * g_.width;
    copy(a_.x.k + first, g_.key_stride(), g_.keys, s.keys, s.k, s.width);
    for (std::int64_t at = 0; at < s.keys; at += kPanel) {
      copy(a_.x.v + first + at * g_.key_stride(), g_.key_stride(), std::max<std::int64_t>(0, g_.keys - at), kPanel,
           s.rows, s.width);
      k_.pair_memory.transpose({.rows = kPanel,
                                .columns = s.width,
                                .from = s.rows,
                                .from_stride = s.width,
                                .to = s.v + at,
                                .to_stride = s.keys});
    }
  }

  void run_panel(const QueryPanel& p, const ForwardScratch& s) const {
    copy(a_.x.q + (p.n * g_.queries + p.first) * g_.query_stride() + p.h * g_.width, g_.query_stride(), p.rows, kPanel,
         s.rows, s.width);
    k_.pair_memory.lanes(
        {.rows = kPanel, .columns = s.width, .from = s.rows, .from_stride = s.width, .to = s.q, .to_stride = 0});
    sum_panel(g_, p, {.top = s.top, .sum = s.sum, .factor = s.factor, .y = s.y}, s.width, a_, k_,
              [&](std::int64_t begin, std::int64_t count) { add_block(p, begin, count, s); });
  }

 private:
  void copy(const Bf16* from, std::int64_t stride, std::int64_t rows, std::int64_t padded, Bf16* to,
            std::int64_t to_stride) const {
    k_.pair_memory.copy_bf16({.rows = rows,
                              .columns = g_.width,
                              .from = from,
                              .from_stride = stride,
                              .padded_rows = padded,
                              .to = to,
                              .to_stride = to_stride});
  }

  // The keys [begin, begin + count).
  void add_block(const QueryPanel& p, std::int64_t begin, std::int64_t count, const ForwardScratch& s) const {
    const std::int64_t padded = rounded_up(count, kPanel);
    pairs_.set({.rows = padded,
                .depth = s.width,
                .panels = 1,
                .a = s.k + begin * s.width,
                .a_stride = s.width,
                .b = s.q,
                .c = s.scores,
                .c_stride = kPanel});
    const float scale = finish_scores(g_, p, begin, count, s.scores, k_.attention);
    if (g_.options.dropout > 0) {
      k_.attention.softmax({.keys = padded, .x = s.scores, .top = s.top, .sum = s.sum, .factor = s.factor});
      drop(g_, run_, p, begin, count, {.x = s.scores, .y = s.scores, .other = nullptr}, k_.attention);
      k_.pair_attention.pack(padded, s.scores, nullptr, 0, s.p);
    } else {
      k_.pair_attention.softmax(
          {.keys = padded, .x = s.scores, .scale = scale, .top = s.top, .sum = s.sum, .factor = s.factor, .p = s.p});
    }
    if (begin > p.keys.begin) k_.attention.multiply(s.width, s.factor, s.y);
    pairs_.add({.rows = s.width,
                .depth = padded,
                .panels = 1,
                .a = s.v + begin,
                .a_stride = s.keys,
                .b = s.p,
                .c = s.y,
                .c_stride = kPanel});
  }

  const AttentionGeometry& g_;
  const AttentionRun& run_;
  const AttentionForward<Bf16>& a_;
  const NativeKernels& k_;
  const PairTable& pairs_;
};

}  // namespace

std::int64_t paired_forward_floats(const AttentionGeometry& g) { return ForwardScratch(g, nullptr).all.used(); }

void paired_forward(const AttentionGeometry& g, const AttentionRun& run, const AttentionForward<Bf16>& arrays,
                    std::int64_t workers, float* scratch, const NativeKernels& kernels) {
  const Forward forward(g, run, arrays, kernels);
  for_key_heads(g, workers, scratch, paired_forward_floats(g), [&](const KeyHeadPart& part, float* own) {
    const ForwardScratch s(g, own);
    const PairScope scope(forward.pairs());
    forward.load_keys(part.n, part.group, s);
    part.for_panels(g, run, [&](const QueryPanel& p) { forward.run_panel(p, s); });
  });
}

}  // namespace lockstep::kernels::native
