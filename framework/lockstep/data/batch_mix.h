// Mixes the samples of a batch in pairs, and their labels to shares of classes: mixup (Zhang et al. 2018) and CutMix
// (Yun et al. 2019).
//
// The partners are neighbours in the order of the step: positions 0 and 1 of the global batch, 2 and 3, and so on; the
// last one of an odd number takes its left neighbour. As the order is a random permutation, so are the pairs. Position
// and (seed, epoch) give the amounts, so a batch does not depend on the number of ranks; and a rank reads at most two
// samples more than its own. A partner has the random crops and colours that it has as a sample itself. Immutable: any
// thread may call it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/sampler.h"
#include "lockstep/data/transforms.h"

namespace lockstep::data {

struct MixOptions {
  std::int64_t classes = 0;  // of which samples have shares
  // The share of a sample is drawn from the beta distribution (alpha, alpha); 0: this kind of mixing is off.
  double mixup_alpha = 0, cutmix_alpha = 0;
  double probability = 1;           // that a pair is mixed
  double cutmix_probability = 0.5;  // that a mixed pair is cut, where both kinds are on
};

// The field of the shares.
inline constexpr std::string_view kLabelShares = "label_shares";

class BatchMix {
 public:
  // Throws Error for fewer than 1 class, negative alphas, none above 0, and probabilities outside [0, 1].
  explicit BatchMix(MixOptions options);

  // Returns the fields of a mixed batch: "image", F32 or F64 (channels, height, width), stays; "label", I32, becomes
  // the class with the larger share; others stay and are not mixed; and at the end comes kLabelShares, (classes)
  // numbers of the image's type with sum 1, for cross_entropy(). Throws Error for other types.
  std::vector<Field> fields(const std::vector<Field>& in) const;

  // The position with which `position` of a step of `size` samples is paired; itself if it is alone.
  static std::int64_t partner(std::int64_t position, std::int64_t size);
  // The positions of the step that a rank needs: its own and their partners, at most one more on each side.
  static Range needed(const StepSamples& step);

  // Mixes the rank's part of a step: `in` holds the samples at needed(step), `out` those at step.local; the fields are
  // `shape` before and fields(shape) after. Throws Error for a label outside [0, classes).
  void apply(const StepSamples& step, std::uint64_t seed, const std::vector<Field>& shape,
             const std::vector<Tensor>& in, std::vector<Tensor>& out) const;

 private:
  // The mixture of one pair: the share of the sample itself, and for CutMix the rectangle that the partner gives.
  struct Mixture {
    double own = 1;
    Range rows{}, columns{};
  };
  Mixture choose(const StepSamples& step, std::uint64_t seed, std::int64_t position, const Shape& image) const;
  template <class T>
  void mix_image(const Mixture& mixture, const Shape& shape, const T* own, const T* other, T* out) const;

  MixOptions options_;
};

// Gives samples that are not mixed, as those of an evaluation, the field kLabelShares: 1 for the class "label".
class LabelShares : public Transform {
 public:
  LabelShares(std::int64_t classes, DType output);  // `output`: F32 or F64
  std::vector<Field> fields(const std::vector<Field>& in) const override;
  void apply(const SampleKey& key, const std::vector<Field>& shape, std::span<const std::byte* const> in,
             std::span<std::byte* const> out) const override;

 private:
  std::int64_t classes_;
  DType output_;
};

}  // namespace lockstep::data
