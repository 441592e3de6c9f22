#include "lockstep/ops/collective.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> AllReduceSumOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(inputs[0].dtype == DType::F32 || inputs[0].dtype == DType::F64, name(), "{}: input is {}, expected f32 or f64",
        path, inputs[0].str());
  return {inputs[0]};
}

std::vector<Value> AllReduceSumOp::gradient(const Request& r) const {
  return {all_reduce_sum(r.gradients[0], collective_)};
}

Value all_reduce_sum(Value x, std::shared_ptr<Collective> collective) {
  check(collective != nullptr, "all_reduce_sum", "no ranks are bound, expected a collective");
  return apply_op(std::make_shared<AllReduceSumOp>(std::move(collective)), {x});
}

}  // namespace lockstep
