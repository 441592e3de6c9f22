// Class indices i32 (N, ...) as numbers (N, C, ...): 1 at the class of a position and 0 elsewhere, with the classes in
// the second dimension as in logits. All numbers of an ignored position are 0. There is no gradient.
#pragma once

#include <optional>

#include "lockstep/graph/graph.h"

namespace lockstep {

class OneHotOp : public Op {
 public:
  OneHotOp(std::int64_t classes, DType dtype, std::optional<std::int32_t> ignore_index)
      : classes_(classes), dtype_(dtype), ignore_index_(ignore_index) {}
  std::int64_t classes() const { return classes_; }
  std::optional<std::int32_t> ignore_index() const { return ignore_index_; }
  std::string_view name() const override { return "one_hot"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;

 private:
  std::int64_t classes_;
  DType dtype_;
  std::optional<std::int32_t> ignore_index_;
};

// Returns the indices as numbers of this type, f32 or f64. Throws Error for another type. An index that is neither a
// class nor the ignored one throws SampleError when the plan runs.
Value one_hot_channels(Value labels, std::int64_t classes, DType dtype, std::optional<std::int32_t> ignore_index = {});

}  // namespace lockstep
