#include "bindings/c/training_sums.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "lockstep/graph/graph.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/runner/step_sums.h"

namespace lockstep::bindings {
namespace {

plan::Plan& evaluation_plan(plan::CompiledModel& model, const data::Batch& batch, std::int64_t samples) {
  std::map<std::string, Type> types;
  for (std::size_t i = 0; i < batch.names.size(); ++i) {
    types[batch.names[i]] = {batch.fields[i].shape().tail().batched(samples), batch.fields[i].dtype()};
  }
  return model.plan(Mode::Eval, types);
}

void fill(plan::Plan& plan, const data::Batch& batch, std::int64_t begin, std::int64_t samples) {
  for (std::size_t i = 0; i < batch.names.size(); ++i) {
    void* input = plan.input(batch.names[i]);
    const Tensor& field = batch.fields[i];
    if (input == nullptr || samples == 0) continue;  // the model does not read it
    const std::size_t row = static_cast<std::size_t>(field.shape().tail().elements()) * size_of(field.dtype());
    std::memcpy(input, field.raw() + static_cast<std::size_t>(begin) * row, static_cast<std::size_t>(samples) * row);
  }
}

}  // namespace

EvaluationSums evaluation_sums(plan::CompiledModel& model, const data::Batch& batch, std::int64_t most) {
  const std::int64_t samples = batch.samples(), part = std::clamp<std::int64_t>(samples, 1, most);
  EvaluationSums result{.metrics = evaluation_plan(model, batch, part).metrics()};
  const train::NominalPlan nominal{.metrics = result.metrics};
  result.sums.assign(parallel::kOtherSums + nominal.sums(Mode::Eval), 0.0);
  for (std::int64_t begin = 0; begin < samples; begin += part) {
    const std::int64_t count = std::min(part, samples - begin);
    plan::Plan& plan = evaluation_plan(model, batch, count);
    fill(plan, batch, begin, count);
    plan.run();
    train::add_sums(plan, Mode::Eval, count, result.sums);
  }
  return result;
}

train::Totals add_up(const comm::Communicator& comm, const EvaluationSums& mine) {
  const std::size_t width = mine.sums.size();
  std::vector<double> all(width * static_cast<std::size_t>(comm.size())), total(width, 0.0);
  comm.allgather(mine.sums, comm::Buffer(all));
  for (std::size_t i = 0; i < all.size(); ++i) total[i % width] += all[i];
  train::Totals totals;
  train::set_totals(total, {.metrics = mine.metrics}, Mode::Eval, totals);
  return totals;
}

}  // namespace lockstep::bindings
