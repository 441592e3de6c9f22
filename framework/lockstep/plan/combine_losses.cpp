#include <cmath>
#include <span>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/plan/trace.h"

namespace lockstep::plan {
namespace {

constexpr const char* kSite = "model";

void check_part(const PartialLoss& part) {
  const Value mean = part.loss.mean;
  check(!part.name.empty() && part.name != "loss", kSite,
        "one of several losses is named '{}', expected a name of its own: 'loss' is that of their sum", part.name);
  check(static_cast<bool>(mean), kSite, "the loss '{}' is an empty Value, expected a scalar", part.name);
  check(mean.shape().elements() == 1, kSite, "the loss '{}' is {}, expected a scalar: take mean() or sum() of it",
        part.name, mean.type().str());
  check(std::isfinite(part.factor), kSite, "the factor of the loss '{}' is {}, expected a finite number", part.name,
        part.factor);
}

Value scalar(Value x, DType dtype) { return cast(x.shape().rank() == 0 ? x : reshape(x, Shape{}), dtype); }

// The mean of a loss over all samples: f64 sums of its weighted means and of its weights.
Metric mean_of(Graph& graph, const PartialLoss& part, std::int64_t batch) {
  const Value weight = part.loss.weight ? scalar(part.loss.weight, DType::F64)
                                        : fill(graph, {Shape{}, DType::F64}, static_cast<double>(batch));
  return {.rule = {.name = part.name,
                   .finish = [](std::span<const double> sums, double /*samples*/,
                                std::span<double> results) { results[0] = sums[1] > 0 ? sums[0] / sums[1] : 0; },
                   .better = Better::Lower},
          .sums = {scalar(part.loss.mean, DType::F64) * weight, weight}};
}

}  // namespace

void combine_losses(Graph& graph, std::int64_t batch, Traced& traced) {
  if (traced.losses.empty()) return;
  check(!traced.loss.mean, kSite, "the model function returned a loss and a list of losses, expected one of the two");
  const PartialLoss& first = traced.losses.front();
  Value total;
  std::vector<Metric> metrics;
  for (const PartialLoss& part : traced.losses) {
    check_part(part);
    check(part.loss.weight == first.loss.weight, kSite,
          "the losses '{}' and '{}' have weight sums of their own, so no mean of all samples is their sum; if both "
          "weigh samples alike, give both the same, as in Loss(b.mean, a.weight), else take per_sample() of each",
          first.name, part.name);
    const Value mean = scalar(part.loss.mean, sum_type(part.loss.mean.dtype()));
    const Value scaled = part.factor == 1 ? mean : part.factor * mean;
    total = total ? total + scaled : scaled;
    metrics.push_back(mean_of(graph, part, batch));
  }
  traced.loss = Loss(total, first.loss.weight);
  metrics.insert(metrics.end(), traced.metrics.begin(), traced.metrics.end());
  traced.metrics = std::move(metrics);
  traced.losses.clear();
}

}  // namespace lockstep::plan
