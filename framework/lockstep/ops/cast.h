// Another element type: f32 to bf16 rounds to nearest even, bf16 to f32 is exact. The gradient is cast back.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

class CastOp : public Op {
 public:
  explicit CastOp(DType dtype) : dtype_(dtype) {}
  std::string_view name() const override { return "cast"; }
  std::vector<Type> infer(std::string_view place, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  DType dtype_;
};

// The end of an error about operands: what is wrong with them, and how a batch's fields are converted.
inline constexpr std::string_view kTypesDiffer =
    "their types differ, expected one type; a loader's option floats converts the fields of a batch";

Value cast(Value x, DType dtype);  // x itself if it is of that type
// The type of what bf16 values are summed or averaged to: f32; of others their own.
constexpr DType sum_type(DType type) { return type == DType::BF16 ? DType::F32 : type; }
// In what a product or a convolution computes: bf16 if the graph says so and x is f32.
Value cast_for_product(Value x);

}  // namespace lockstep
