#include "lockstep/losses/per_sample.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/pointwise.h"

namespace lockstep {

Loss per_sample(const Loss& loss, Value field) {
  check(field.shape().rank() > 0, "per_sample", "the field is {}, expected (samples, ...)", field.type().str());
  if (!loss.weight) return loss;
  const std::int64_t samples = std::max<std::int64_t>(1, field.shape()[0]);  // a rank may have none
  return loss.mean * loss.weight * (1 / static_cast<double>(samples));
}

}  // namespace lockstep
