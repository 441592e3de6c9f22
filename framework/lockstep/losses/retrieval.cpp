#include "lockstep/losses/retrieval.h"

#include <vector>

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
namespace {

constexpr double kNever = -1e30;  // a logit whose exponential is 0

// The scores of the candidates from outside of the batch, (users, items).
Value more_scores(std::string_view name, Value user, const InBatchOptions& o) {
  const std::int64_t items = o.more.shape().rank() == 2 ? o.more.shape()[0] : -1;
  check(items >= 0 && o.more.shape()[1] == user.shape()[1], name, "further vectors are {}, expected (items, {})",
        o.more.type().str(), user.shape()[1]);
  check(static_cast<bool>(o.more_ids) == static_cast<bool>(o.ids) &&
            (!o.more_ids || (o.more_ids.dtype() == DType::I32 && o.more_ids.shape() == Shape{items})),
        name, "ids of further items are {}, expected {}", o.more_ids ? o.more_ids.type().str() : "missing",
        o.ids ? formatted("i32({}), as the samples have ids", items) : "none, as the samples have none");
  check(static_cast<bool>(o.more_log_q) == static_cast<bool>(o.log_q) &&
            (!o.more_log_q || o.more_log_q.shape() == Shape{items}),
        name, "log_q of further items is {}, expected {}", o.more_log_q ? o.more_log_q.type().str() : "missing",
        o.log_q ? formatted("({}), as the samples have it", items) : "none, as the samples have none");
  Value scores = cast(matmul(user, cast(o.more, user.dtype()), false, true), user.dtype()) * (1 / o.temperature);
  if (o.more_log_q) scores = scores - unsqueeze(cast(o.more_log_q, user.dtype()), 0);
  if (!o.more_ids) return scores;
  const Value own = to_floating(o.ids, DType::F64), other = to_floating(o.more_ids, DType::F64);
  return where(cast(equal(unsqueeze(own, 1), unsqueeze(other, 0)), user.dtype()), kNever, scores);
}

}  // namespace

Loss in_batch_softmax(Value user, Value item, const InBatchOptions& options, const LossWeights& weights) {
  constexpr std::string_view kName = "in_batch_softmax";
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
  std::vector<Value> candidates{unsqueeze(own, 1), where(same, kNever, all)};
  if (options.more) candidates.push_back(more_scores(kName, cast(user, wide), options));
  return weighted_mean(kName, logsumexp(concat(candidates, 1), {1}) - own, weights);
}

}  // namespace lockstep
