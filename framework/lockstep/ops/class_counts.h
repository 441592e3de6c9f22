// Counts of positions by their class and by the class that logits predict, from which metrics follow: accuracy, IoU,
// precision, the confusion matrix. The predicted class is that of the largest logit, of equal logits the lower one, and
// a NaN counts as larger than any number. Counts are exact; there is no gradient.
#pragma once

#include <optional>

#include "lockstep/graph/graph.h"

namespace lockstep {

// (logits, targets) -> f64. Targets are class indices i32 (N, ...) for logits (N, C, ...), where a position with the
// ignored index counts nowhere; or numbers of the logits' shape and type, which are positive above 0.5 as a logit is
// above 0 (C is 2 then, class 1 is the positive one), and count nowhere if they are NaN. With `matrix` the result is
// (C, C): positions of class i with prediction j. Without it (3, C): positions of class c that are predicted right,
// positions predicted as c, and positions of class c.
class ClassCountsOp : public Op {
 public:
  ClassCountsOp(bool matrix, std::optional<std::int32_t> ignore_index) : matrix_(matrix), ignore_index_(ignore_index) {}
  bool matrix() const { return matrix_; }
  std::optional<std::int32_t> ignore_index() const { return ignore_index_; }
  std::string_view name() const override { return "class_counts"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::string attributes() const override { return matrix_ ? "matrix" : ""; }

 private:
  bool matrix_;
  std::optional<std::int32_t> ignore_index_;
};

// Equal counts of the same values are one node, as several metrics follow from them. Throw Error where types do not
// fit. An index that is neither a class nor the ignored one throws SampleError when the plan runs.
Value class_counts(Value logits, Value target, std::optional<std::int32_t> ignore_index = {});
Value confusion_counts(Value logits, Value target, std::optional<std::int32_t> ignore_index = {});

}  // namespace lockstep
