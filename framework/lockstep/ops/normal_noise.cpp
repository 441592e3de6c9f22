#include "lockstep/ops/normal_noise.h"

#include "lockstep/core/error.h"

namespace lockstep {

std::vector<Type> NormalNoiseOp::infer(std::string_view path, std::span<const Type> inputs) const {
  check(dtype_ == DType::F32 || dtype_ == DType::F64, name(), "{}: the numbers would be {}, expected f32 or f64", path,
        name_of(dtype_));
  return {{sample_.batched(inputs[1].shape[0]), dtype_}};
}

Value normal_noise_like(Value like, std::string_view call_site) {
  check(like.shape().rank() >= 1, "normal_noise", "{}: the numbers would be a scalar, expected a batch", call_site);
  Graph& graph = like.graph();
  const std::uint64_t key = graph.random_key(call_site);
  return apply_op(std::make_shared<NormalNoiseOp>(like.shape().tail(), like.dtype(), key),
                  {graph.step(), graph.sample_ids(like.shape()[0])});
}

}  // namespace lockstep
