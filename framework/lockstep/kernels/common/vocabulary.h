// The part that the kernels of vocabulary_cross_entropy share (ops/vocabulary_cross_entropy.h): arrays, and what
// follows from the losses of the positions.
#pragma once

#include <cstdint>
#include <optional>

#include "lockstep/kernels/common/targets.h"
#include "lockstep/kernels/kernel.h"
#include "lockstep/ops/vocabulary_cross_entropy.h"

namespace lockstep::kernels {

struct VocabularyShape {
  VocabularyShape(const KernelRequest& request, const VocabularyAttributes& attributes);
  std::int64_t positions, features, vocabulary;
  VocabularyAttributes attributes;
  TargetSource source;

  double smoothing() const { return attributes.options.label_smoothing; }
  // The loss of a position from its log-sum of exponentials, the target's logit and the mean logit. Without smoothing
  // the mean does not count, which is infinite where the bias forbids a word.
  double loss(double log_sum, double of_target, double mean) const {
    const double e = smoothing();
    return e == 0 ? log_sum - of_target : (1 - e) * (log_sum - of_target) + e * (log_sum - mean);
  }
  bool counts(std::int32_t target) const { return target != attributes.options.ignore_index; }
};

// T is the type of x, Sum that of all else.
template <class T, class Sum>
struct VocabularyInputs {
  VocabularyInputs(const VocabularyShape& s, const Arguments& a)
      : x(a.in<T>(0)), table(a.in<Sum>(1)), targets(a.in<std::int32_t>(2)), next(3) {
    bias = s.attributes.bias ? a.in<Sum>(next++) : nullptr;
    weights = s.attributes.weights ? a.in<Sum>(next++) : nullptr;
  }
  const T* x;        // [positions][features]
  const Sum* table;  // [vocabulary][features]
  const std::int32_t* targets;
  const Sum *bias, *weights;  // [vocabulary], [positions], or null
  std::size_t next;           // the number of the first input behind these
};

// Throws SampleError for a target that is neither in the vocabulary nor the ignored index.
void check_targets(const VocabularyShape& shape, const std::int32_t* targets);

// Writes the mean of the losses and the sum of weights of the positions, 0 where this sum is; sums run in the order of
// positions, in double.
template <class Sum>
void vocabulary_mean(const VocabularyShape& shape, const std::int32_t* targets, const Sum* weights, const Sum* losses,
                     Sum* loss, Sum* weight_sum);

// The factor of a position's slope. dloss / weight_sum is taken first, so that equal numbers, also zeros, give the
// gradient of the plain sum. A loss whose weights sum to 0 is 0, and so is its slope for any other dloss.
template <class Sum>
struct VocabularySlope {
  VocabularySlope(const VocabularyShape& s, const std::int32_t* of_targets, const Sum* of_weights, Sum weight_sum,
                  Sum dloss)
      : shape(s),
        targets(of_targets),
        weights(of_weights),
        scale(dloss == weight_sum ? 1
              : weight_sum == 0   ? 0
                                  : static_cast<double>(dloss) / static_cast<double>(weight_sum)) {}
  double operator()(std::int64_t m) const {
    if (!shape.counts(targets[m])) return 0;
    return weights ? scale * static_cast<double>(weights[m]) : scale;
  }
  const VocabularyShape& shape;
  const std::int32_t* targets;
  const Sum* weights;
  double scale;
};

}  // namespace lockstep::kernels
