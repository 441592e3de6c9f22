#include "lockstep/kernels/native/vocabulary.h"

#include <array>
#include <limits>
#include <optional>

#include "lockstep/core/math.h"
#include "lockstep/kernels/native/paired_attention.h"

namespace lockstep::kernels::native {
namespace {

constexpr std::int64_t kWords = 128;
constexpr std::int64_t kGroup = 8;  // panels that use a block of words while it lies in the second-level cache

// The state of kPanel positions after some blocks of words.
struct PanelState {
  float* x;                   // [features][kPanel]; or in pairs:
  Bf16* x_pairs;              // [width / 2][kPanel][2]
  float *top, *best;          // [kPanel]
  std::int32_t* best_word;    // [kPanel]
  double *sum, *total, *own;  // [kPanel]: of the exponentials, of the logits; the logit of the target
};

struct ForwardScratch {
  ForwardScratch(const VocabularyShape& s, bool paired, float* begin)
      : all(begin), width(rounded_up(s.features, kPanel)) {
    for (PanelState& p : panels) {
      p.x = paired ? nullptr : all.take(s.features * kPanel);
      p.x_pairs = paired ? take_bf16(all, width * kPanel) : nullptr;
      for (float** lanes : {&p.top, &p.best}) *lanes = all.take(kPanel);
      p.best_word = reinterpret_cast<std::int32_t*>(all.take(kPanel));
      for (double** lanes : {&p.sum, &p.total, &p.own}) *lanes = reinterpret_cast<double*>(all.take(2 * kPanel));
    }
    logits = all.take(kWords * kPanel);
    for (float** lanes : {&sum, &factor}) *lanes = all.take(kPanel);
    if (!paired) return;
    rows = take_bf16(all, kPanel * width);
    table = take_bf16(all, kWords * width);
  }
  Scratch all;
  std::int64_t width;                      // features, rounded up
  Bf16 *rows = nullptr, *table = nullptr;  // [kPanel][width], [kWords][width]
  std::array<PanelState, kGroup> panels{};
  float *logits, *sum, *factor;  // [kWords][kPanel], [kPanel]
};

template <class T>
class Forward {
 public:
  Forward(const VocabularyShape& s, const VocabularyInputs<T, float>& in, const VocabularyOutputs& out,
          const NativeKernels& kernels)
      : s_(s), in_(in), out_(out), k_(kernels), pairs_(in_pairs<T>(kernels) ? pair_table(kernels) : nullptr) {}

  // Some panels, from position `first` on; returns the number of correct positions.
  std::int64_t run(std::int64_t first, std::int64_t panels, const ForwardScratch& scratch) const {
    std::optional<PairScope> scope;
    if (pairs_ != nullptr) scope.emplace(*pairs_);
    for (std::int64_t p = 0; p < panels; ++p) begin(first + p * kPanel, panel(scratch, p), scratch);
    for (std::int64_t w = 0; w < s_.vocabulary; w += kWords) {
      if (pairs_ != nullptr) load_words(w, std::min(kWords, s_.vocabulary - w), scratch);
      for (std::int64_t p = 0; p < panels; ++p)
        add_words(w, std::min(kWords, s_.vocabulary - w), first + p * kPanel, panel(scratch, p), scratch);
    }
    std::int64_t correct = 0;
    for (std::int64_t p = 0; p < panels; ++p) correct += finish(first + p * kPanel, panel(scratch, p));
    return correct;
  }

 private:
  static const PanelState& panel(const ForwardScratch& scratch, std::int64_t p) {
    return scratch.panels[static_cast<std::size_t>(p)];
  }
  std::int64_t rows(std::int64_t first) const { return std::min<std::int64_t>(kPanel, s_.positions - first); }

  void begin(std::int64_t first, const PanelState& p, const ForwardScratch& s) const {
    if constexpr (std::is_same_v<T, Bf16>) {
      if (pairs_ != nullptr) load_pairs(first, p, s);
    }
    if (pairs_ == nullptr)
      attention_memory<T>(k_).transpose_in({.rows = rows(first),
                                            .columns = s_.features,
                                            .from = in_.x + first * s_.features,
                                            .from_stride = s_.features,
                                            .scale = 1,
                                            .to = p.x,
                                            .to_stride = kPanel});
    for (float* lanes : {p.top, p.best}) std::fill_n(lanes, kPanel, -std::numeric_limits<float>::infinity());
    std::fill_n(p.best_word, kPanel, 0);
    for (double* lanes : {p.sum, p.total, p.own}) std::fill_n(lanes, kPanel, 0.0);
  }

  void load_pairs(std::int64_t first, const PanelState& p, const ForwardScratch& s) const {
    k_.pair_memory.copy_bf16({.rows = rows(first),
                              .columns = s_.features,
                              .from = in_.x + first * s_.features,
                              .from_stride = s_.features,
                              .padded_rows = kPanel,
                              .to = s.rows,
                              .to_stride = s.width});
    k_.pair_memory.lanes(
        {.rows = kPanel, .columns = s.width, .from = s.rows, .from_stride = s.width, .to = p.x_pairs, .to_stride = 0});
  }
  void load_words(std::int64_t w, std::int64_t count, const ForwardScratch& s) const {
    k_.pair_memory.copy_f32({.rows = count,
                             .columns = s_.features,
                             .from = in_.table + w * s_.features,
                             .from_stride = s_.features,
                             .padded_rows = rounded_up(count, kPanel),
                             .to = s.table,
                             .to_stride = s.width});
  }

  void multiply(std::int64_t w, std::int64_t count, const PanelState& p, const ForwardScratch& s) const {
    if (pairs_ == nullptr)
      return k_.product_f32.set(
          panel_product(count, s_.features, in_.table + w * s_.features, s_.features, p.x, s.logits));
    pairs_->set({.rows = rounded_up(count, kPanel),
                 .depth = s.width,
                 .panels = 1,
                 .a = s.table,
                 .a_stride = s.width,
                 .b = p.x_pairs,
                 .c = s.logits,
                 .c_stride = kPanel});
  }

  void add_words(std::int64_t w, std::int64_t count, std::int64_t first, const PanelState& p,
                 const ForwardScratch& s) const {
    multiply(w, count, p, s);
    k_.vocabulary.scan({.words = count,
                        .first_word = w,
                        .x = s.logits,
                        .bias = in_.bias != nullptr ? in_.bias + w : nullptr,
                        .best = p.best,
                        .sum = s.sum,
                        .best_word = p.best_word});
    for (std::int64_t l = 0; l < rows(first); ++l) {
      const std::int64_t target = in_.targets[first + l] - w;
      if (target >= 0 && target < count) p.own[l] = static_cast<double>(s.logits[target * kPanel + l]);
    }
    for (std::int64_t l = 0; l < kPanel; ++l) p.total[l] += static_cast<double>(s.sum[l]);
    std::fill_n(s.sum, kPanel, 0.0F);
    k_.attention.softmax({.keys = count, .x = s.logits, .top = p.top, .sum = s.sum, .factor = s.factor});
    for (std::int64_t l = 0; l < kPanel; ++l)
      p.sum[l] = p.sum[l] * static_cast<double>(s.factor[l]) + static_cast<double>(s.sum[l]);
  }

  std::int64_t finish(std::int64_t first, const PanelState& p) const {
    std::int64_t correct = 0;
    for (std::int64_t l = 0; l < rows(first); ++l) {
      const std::int64_t m = first + l;
      out_.log_sums[m] = out_.losses[m] = 0;
      if (!s_.counts(in_.targets[m])) continue;
      const double log_sum = static_cast<double>(p.top[l]) + math::log(p.sum[l]);
      const double mean = p.total[l] / static_cast<double>(s_.vocabulary);
      out_.log_sums[m] = static_cast<float>(log_sum);
      out_.losses[m] = static_cast<float>(s_.loss(log_sum, p.own[l], mean));
      correct += p.best_word[l] == in_.targets[m] && (in_.weights == nullptr || in_.weights[m] != 0) ? 1 : 0;
    }
    return correct;
  }

  const VocabularyShape& s_;
  const VocabularyInputs<T, float>& in_;
  const VocabularyOutputs& out_;
  const NativeKernels& k_;
  const PairTable* pairs_;  // null: f32
};

}  // namespace

template <class T>
std::size_t vocabulary_forward_scratch(const VocabularyShape& s, std::int64_t workers, const NativeKernels& kernels) {
  return static_cast<std::size_t>(workers * ForwardScratch(s, in_pairs<T>(kernels), nullptr).all.used()) *
         sizeof(float);
}

template <class T>
void vocabulary_forward(const VocabularyShape& s, const VocabularyInputs<T, float>& in, const VocabularyOutputs& out,
                        std::int64_t workers, float* scratch, const NativeKernels& kernels) {
  check_targets(s, in.targets);
  const Forward<T> forward(s, in, out, kernels);
  const std::int64_t panels = rounded_up(s.positions, kPanel) / kPanel;
  const std::int64_t group = std::clamp<std::int64_t>(panels / (2 * workers), 1, kGroup);
  std::atomic<std::int64_t> correct = 0;
  const bool paired = in_pairs<T>(kernels);
  for_items((panels + group - 1) / group, workers, scratch, ForwardScratch(s, paired, nullptr).all.used(),
            [&](std::int64_t i, float* own) {
              const std::int64_t first = i * group;
              correct += forward.run(first * kPanel, std::min(group, panels - first), ForwardScratch(s, paired, own));
            });
  *out.correct = static_cast<double>(correct.load());
  vocabulary_mean(s, in.targets, in.weights, out.losses, out.loss, out.weight_sum);
}

#define LOCKSTEP_INSTANTIATE(T)                                                                                   \
  template std::size_t vocabulary_forward_scratch<T>(const VocabularyShape&, std::int64_t, const NativeKernels&); \
  template void vocabulary_forward<T>(const VocabularyShape&, const VocabularyInputs<T, float>&,                  \
                                      const VocabularyOutputs&, std::int64_t, float*, const NativeKernels&);
LOCKSTEP_INSTANTIATE(float)
LOCKSTEP_INSTANTIATE(Bf16)
#undef LOCKSTEP_INSTANTIATE

}  // namespace lockstep::kernels::native
