// Softmax, and its cross entropy over logits [n, c, s] for n samples, c classes and s positions of each sample (s = 1:
// plain classification) with class weights w (null: ones) and label smoothing e, as PyTorch's cross_entropy with
// reduction="mean"; ops/cross_entropy.h has the formula. Sums run over positions in a fixed order in double. Nothing
// allocates. A target outside [0, c), and not the ignored one, throws SampleError.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>

#include "lockstep/kernels/common/targets.h"

namespace lockstep::kernels::generic {

struct CrossEntropyOptions {
  std::int64_t samples = 0, classes = 0;
  double label_smoothing = 0;  // in [0, 1]
  TargetSource source = {};
  std::int64_t positions = 1;                     // of a sample
  std::optional<std::int32_t> ignore_index = {};  // the target of positions that count nowhere
};

// The target of a position: a class, or else a probability of each class.
template <class T>
struct CrossEntropyTargets {
  CrossEntropyTargets(const std::int32_t* targets) : classes(targets) {}  // NOLINT: class indices are the usual targets
  CrossEntropyTargets(const std::int32_t* targets, const T* soft, const T* weights_of_positions)
      : classes(targets), probabilities(soft), weights(weights_of_positions) {}
  const std::int32_t* classes;       // [n, s], or null
  const T* probabilities = nullptr;  // [n, c, s] where `classes` is null
  const T* weights = nullptr;        // of positions [n, s]; null: ones
};
template <class T>
using TargetsOf = std::type_identity_t<CrossEntropyTargets<T>>;

// Writes probabilities [n, c, s] (may be the logits), the mean loss, and the sum of weights. A sum of 0 (no samples, or
// samples of classes without weight) gives loss 0. What weighs 0 is not computed: it may be NaN.
template <class T>
void softmax_cross_entropy_forward(const CrossEntropyOptions& options, const T* logits, TargetsOf<T> targets,
                                   const T* class_weights, T* probabilities, T* loss, T* weight_total);

// dlogits [n, c, s] (may be the probabilities). The factor dloss / weight_total is taken first, so that dloss ==
// weight_total gives the gradient of the plain sum, exactly, also where both are 0. With a weight_total of 0 any other
// dloss gives 0, as the loss is.
template <class T>
void softmax_cross_entropy_backward(const CrossEntropyOptions& options, const T* probabilities, TargetsOf<T> targets,
                                    const T* class_weights, T dloss, T weight_total, T* dlogits);

// y [n, c, s] = 1 at the class of a position, 0 elsewhere. Reads samples, classes, positions, ignore_index and source.
template <class T>
void one_hot(const CrossEntropyOptions& options, const std::int32_t* targets, T* y);

// y = softmax of each of the n rows of x [n, c] (may be x), computed in double.
template <class T>
void softmax_forward(std::int64_t n, std::int64_t c, const T* x, T* y);
// dx = y (dy - sum of y dy over the row); may be dy or y.
template <class T>
void softmax_backward(std::int64_t n, std::int64_t c, const T* y, const T* dy, T* dx);
// The same along the middle axis of arrays [n, c, inner] (softmax_columns.cpp).
template <class T>
void softmax_columns_forward(std::int64_t n, std::int64_t c, std::int64_t inner, const T* x, T* y);
template <class T>
void softmax_columns_backward(std::int64_t n, std::int64_t c, std::int64_t inner, const T* y, const T* dy, T* dx);

// Counts of ops/class_counts.h for logits [n, c, s]: [c, c] with `matrix`, else [3, c]. Reads samples, classes,
// positions, ignore_index and source. And for `elements` numbers beside numbers, of two classes.
template <class T>
void class_counts(const CrossEntropyOptions& options, const T* logits, const std::int32_t* targets, bool matrix,
                  double* counts);
template <class T>
void positive_counts(std::int64_t elements, const T* logits, const T* targets, bool matrix, double* counts);

// The number of samples whose target is among the k largest logits; of equal logits the lower index comes first. A NaN
// counts as larger than any number, and a target that is NaN as wrong unless k >= c.
template <class T>
double count_correct(std::int64_t n, std::int64_t c, std::int64_t k, const T* logits, const std::int32_t* targets,
                     const TargetSource& source = {.op = "count_correct"});

}  // namespace lockstep::kernels::generic
