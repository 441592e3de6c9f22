#include "lockstep/data/class_predictions.h"

#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"

namespace lockstep::data {
namespace {

// The classes of one element lie `stride` apart, from `in` on.
template <class T>
std::int32_t classify(const T* in, T* probability, std::int64_t classes, std::int64_t stride) {
  std::int64_t best = 0;
  for (std::int64_t c = 1; c < classes; ++c) {
    if (in[c * stride] > in[best * stride]) best = c;
  }
  const auto largest = static_cast<double>(in[best * stride]);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += math::exp(static_cast<double>(in[c * stride]) - largest);
  for (std::int64_t c = 0; c < classes; ++c)
    probability[c * stride] = static_cast<T>(math::exp(static_cast<double>(in[c * stride]) - largest) / sum);
  return static_cast<std::int32_t>(best);
}

template <class T>
void classify_all(const Tensor& logits, std::int64_t classes, Tensor& chosen, Tensor& probability) {
  const std::int64_t samples = logits.shape()[0], stride = chosen.shape().tail().elements();
  const std::span<const T> in = logits.data<T>();
  const std::span<T> out = probability.data<T>();
  const std::span<std::int32_t> best = chosen.data<std::int32_t>();
  for (std::int64_t s = 0; s < samples; ++s) {
    for (std::int64_t i = 0; i < stride; ++i) {
      const auto at = static_cast<std::size_t>(s * classes * stride + i);
      best[static_cast<std::size_t>(s * stride + i)] = classify(&in[at], &out[at], classes, stride);
    }
  }
}

}  // namespace

std::vector<NamedTensor> class_predictions(const Tensor& logits, std::int64_t classes) {
  const Shape& shape = logits.shape();
  check(shape.rank() >= 2 && shape[1] == classes && (logits.dtype() == DType::F32 || logits.dtype() == DType::F64),
        "predict", "the prediction is {} of {}, and there are {} classes; expected logits (samples, {}, ...)",
        shape.str(), name_of(logits.dtype()), classes, classes);
  std::vector<std::int64_t> sizes = shape.dims();
  sizes.erase(sizes.begin() + 1);
  Tensor chosen(Shape(sizes), DType::I32), probability(shape, logits.dtype());
  if (logits.dtype() == DType::F64) {
    classify_all<double>(logits, classes, chosen, probability);
  } else {
    classify_all<float>(logits, classes, chosen, probability);
  }
  std::vector<NamedTensor> arrays;
  arrays.push_back({std::string(kClassArray), std::move(chosen)});
  arrays.push_back({"probability", std::move(probability)});
  return arrays;
}

}  // namespace lockstep::data
