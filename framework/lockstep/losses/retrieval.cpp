#include "lockstep/losses/retrieval.h"

#include "lockstep/core/error.h"
#include "lockstep/graph/graph.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/loss_weights.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/to_floating.h"

namespace lockstep {

Loss in_batch_softmax(Value user, Value item, const InBatchOptions& options, const LossWeights& weights) {
  constexpr std::string_view kName = "in_batch_softmax";
  constexpr double kNever = -1e30;  // a logit whose exponential is 0
  require_equal_shapes(kName, user, item);
  check(user.shape().rank() == 2, kName, "the vectors are {}, expected (samples, elements)", user.type().str());
  check(options.temperature > 0, kName, "the temperature is {}, expected more than 0", options.temperature);
  const DType wide = sum_type(user.dtype());
  const double scale = 1 / options.temperature;
  Value all = cast(matmul(user, item, false, true), wide) * scale;    // (users, items)
  Value own = sum(cast(user, wide) * cast(item, wide), {1}) * scale;  // (samples)
  if (options.log_q) {
    const Value log_q = cast(options.log_q, wide);
    all = all - unsqueeze(log_q, 0);
    own = own - log_q;
  }
  const std::int64_t samples = own.shape()[0];
  if (options.ids)
    check(options.ids.dtype() == DType::I32 && options.ids.shape() == Shape{samples}, kName,
          "the ids are {}, expected i32({})", options.ids.type().str(), samples);
  // Without ids a sample is the same as itself alone.
  const Value number = to_floating(options.ids ? options.ids : own.graph().sample_ids(samples), DType::F64);
  const Value same = cast(equal(unsqueeze(number, 1), unsqueeze(number, 0)), wide);
  const Value others = where(same, kNever, all);
  return weighted_mean(kName, logsumexp(concat({unsqueeze(own, 1), others}, 1), {1}) - own, weights);
}

}  // namespace lockstep
