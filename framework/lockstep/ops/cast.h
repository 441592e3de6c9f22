// Converts the element type between f32 and bf16 or f64: to fewer digits it rounds to nearest even, to more it is
// exact. The gradient is cast back.
#pragma once

#include "lockstep/graph/graph.h"

namespace lockstep {

class CastOp : public Op {
 public:
  explicit CastOp(DType dtype) : dtype_(dtype) {}
  std::string_view name() const override { return "cast"; }
  std::vector<Type> infer(std::string_view path, std::span<const Type> inputs) const override;
  std::vector<Value> gradient(const Request& request) const override;

 private:
  DType dtype_;
};

// The last part of an error about operands of different types; it says how to convert the fields of a batch.
inline constexpr std::string_view kTypesDiffer =
    "their types differ, expected one type; a loader's option floats converts the fields of a batch";

// Returns x converted to `dtype`, or x itself if it has this type. Throws Error for integers.
Value cast(Value x, DType dtype);
// The type of sums and means of values of this type: f32 for bf16, else the type itself.
constexpr DType sum_type(DType type) { return type == DType::BF16 ? DType::F32 : type; }
// Returns x in the type in which a product or a convolution computes: bf16 if the graph has that matrix_dtype() and x
// is f32, else x.
Value cast_for_product(Value x);

}  // namespace lockstep
