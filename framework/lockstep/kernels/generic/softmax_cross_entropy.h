// Softmax cross entropy over logits [n, c] with integer targets [n], class weights [c] (null: ones) and label
// smoothing, as PyTorch's cross_entropy with reduction="mean". Per sample, with e = label_smoothing,
//   l = (1 - e) * w_y * -log p_y + e / c * sum_j w_j * -log p_j;  loss = sum l / sum w_y.
// Sums run over samples in a fixed order in double. Nothing allocates. A target outside [0, c) throws SampleError.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::kernels::generic {

// The origin of the targets, for the SampleError about a target outside [0, classes).
struct TargetSource {
  std::string op = "cross_entropy", path = "", field = "";  // path: the node's module path; field: of the batch
};

struct CrossEntropyOptions {
  std::int64_t samples = 0, classes = 0;
  double label_smoothing = 0;  // in [0, 1]
  TargetSource source = {};
};

// Writes probabilities [n, c] (may be the logits), the mean loss, and the weight total sum w_y. A weight total of 0 (no
// samples, or samples of classes without weight) gives loss 0.
template <class T>
void softmax_cross_entropy_forward(const CrossEntropyOptions& options, const T* logits, const std::int32_t* targets,
                                   const T* class_weights, T* probabilities, T* loss, T* weight_total);

// dlogits [n, c] (may be the probabilities). The factor dloss / weight_total is taken first, so that dloss ==
// weight_total gives the gradient of the plain sum, exactly, also where both are 0.
template <class T>
void softmax_cross_entropy_backward(const CrossEntropyOptions& options, const T* probabilities,
                                    const std::int32_t* targets, const T* class_weights, T dloss, T weight_total,
                                    T* dlogits);

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

// The number of samples whose target is among the k largest logits; of equal logits the lower index comes first. A NaN
// counts as larger than any number, and a target that is NaN as wrong unless k >= c.
template <class T>
double count_correct(std::int64_t n, std::int64_t c, std::int64_t k, const T* logits, const std::int32_t* targets,
                     const TargetSource& source = {.op = "count_correct"});

}  // namespace lockstep::kernels::generic
