// The columns that a file of predictions has of a classifier.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "lockstep/data/array_datasets.h"

namespace lockstep::data {

inline constexpr std::string_view kClassArray = "class";

// Returns, of logits (samples, classes, ...) in F32 or F64, "class" (samples, ...), I32: the first class with the
// largest logit; and "probability" (samples, classes, ...), of the type of the logits: softmax over the classes,
// computed in f64. Throws Error at site "predict" for another shape.
std::vector<NamedTensor> class_predictions(const Tensor& logits, std::int64_t classes);

}  // namespace lockstep::data
