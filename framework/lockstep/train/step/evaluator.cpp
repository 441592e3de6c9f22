#include "lockstep/train/step/evaluator.h"

#include <algorithm>
#include <cmath>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/train/guard/step_inspection.h"
#include "lockstep/train/prepare/batch_check.h"
#include "lockstep/train/runner/step_sums.h"

namespace lockstep::train {
namespace {

// A bit in the requests of an evaluation: at least one rank did not evaluate all of its samples.
constexpr std::uint64_t kLeftEvaluation = std::uint64_t{1} << 63;

std::size_t width(const PreparedModel& prepared) { return parallel::kOtherSums + prepared.nominal().sums(Mode::Eval); }

}  // namespace

Evaluator::Evaluator(PreparedModel& prepared, parallel::GradientEngine& engine, BatchFeed& feed, StepVotes& votes,
                     const std::function<void()>& meanwhile)
    : prepared_(prepared),
      engine_(&engine),
      feed_(feed),
      votes_(votes),
      control_(prepared.comm(), prepared.world(), parallel::ControlSize{width(prepared), parallel::kControlWords}) {
  control_.while_waiting(meanwhile);
  add_up(no_sums(), 0);
}

Evaluator::Sums Evaluator::no_sums() const {
  const auto shards = static_cast<std::size_t>(prepared_.world().my_shards().size());
  return Sums(shards, std::vector<double>(width(prepared_)));
}

Totals Evaluator::run(data::Loader& loader, const std::function<void(std::int64_t)>& progress) {
  Heartbeat& heartbeat = prepared_.heartbeat();
  bad_ = {};
  Sums sums = no_sums();
  RankedPairs pairs(prepared_.nominal().metrics);
  std::uint64_t requests = votes_.ask();
  heartbeat.wait();
  engine_->average_replicas();
  engine_->fence();
  heartbeat.beat();
  if (prepared_.tables() != nullptr) prepared_.tables()->begin_passes();
  for (const data::Batch& batch : loader.epoch()) {
    heartbeat.beat();
    requests |= votes_.ask();
    if (votes_.ends_evaluation(requests)) {
      requests |= kLeftEvaluation;
      break;
    }
    BatchFeed::check_batch(batch);
    add_batch(batch, loader.dataset(), sums, pairs);
    if (progress) progress(batch.step.offset + batch.step.global_size);
  }
  heartbeat.wait();
  if (prepared_.tables() != nullptr) prepared_.tables()->end_passes();
  add_up(sums, requests);
  Totals result;
  set_totals(control_.block().sums(), prepared_.nominal(), Mode::Eval, result);
  set_ranked(pairs.finish(prepared_.comm(), heartbeat), prepared_.nominal(), result);
  const std::uint64_t all = control_.block().any(parallel::kRequestWord);
  result.whole = (all & kLeftEvaluation) == 0;
  votes_.agreed(all & ~kLeftEvaluation);
  return result;
}

void Evaluator::explain(const Totals& totals) const {
  if (totals.samples == 0 || std::isfinite(totals.loss)) return;  // the same on all ranks
  const comm::Communicator& comm = prepared_.comm();
  const std::int64_t first = comm.allreduce(bad_.position, comm::ReduceOp::Min);
  std::string text;
  for (const std::string& mine : comm.allgather_strings(bad_.position == first ? bad_.text : "")) {
    if (text.empty()) text = mine;
  }
  const std::string loss = formatted("the loss of the evaluation is {}", totals.loss);
  if (!text.empty() && prepared_.options().guards.action == GuardAction::Stop)
    throw comm::AgreedError(formatted("[evaluation] {}: {}; expected finite numbers", loss, text));
  if (!comm.is_root()) return;
  if (text.empty()) {
    log()->warn("evaluation: {}, and its samples are finite{}", loss, kDivergenceAdvice);
  } else {
    log()->warn("evaluation: {}: {}", loss, text);
  }
}

void Evaluator::find_bad_sample(const data::Batch& batch, Range rows, const data::Dataset& dataset) {
  for (const data::Field& field : prepared_.fields()) {
    const std::int64_t row = first_bad_row(batch.at(field.name), rows);
    const std::int64_t position = batch.step.offset + batch.step.local.begin + row;
    if (row < 0 || position >= bad_.position) continue;
    const std::string sample = dataset.locate(batch.step.samples[static_cast<std::size_t>(row)]);
    bad_ = {.position = position, .text = formatted("'{}' of {} is not finite", field.name, sample)};
  }
}

void Evaluator::add_batch(const data::Batch& batch, const data::Dataset& dataset, Sums& sums, RankedPairs& pairs) {
  const parallel::WorldLayout& world = prepared_.world();
  const Range shards = world.my_shards();
  const std::int64_t first = batch.step.local.begin;
  for (std::int64_t shard = shards.begin; shard < shards.end; ++shard) {
    const Range part = part_of(batch.step.global_size, world.tree.shards(), shard);
    if (part.size() == 0) continue;
    check(part.begin >= first && part.end - first <= batch.samples(), "trainer",
          "the batch to evaluate has samples [{}, {}) of {}, expected this rank's part [{}, {}): make the loader with "
          "Trainer::sampler()",
          first, first + batch.samples(), batch.step.global_size, part.begin, part.end);
    const Range rows{part.begin - first, part.end - first};
    plan::Plan& plan = feed_.plan(Mode::Eval, rows.size());
    feed_.fill(plan, batch, rows, 0);
    run_on_rows(batch, rows, [&] { plan.run(); });
    std::vector<double>& sum = sums[static_cast<std::size_t>(shard - shards.begin)];
    add_sums(plan, Mode::Eval, part.size(), sum);
    if (!std::isfinite(sum[parallel::kLossSum])) find_bad_sample(batch, rows, dataset);
    pairs.add(plan);
  }
}

// Sums over the shards of all ranks by messages: evaluations are rare, so shared memory is not needed.
void Evaluator::add_up(const Sums& sums, std::uint64_t requests) {
  parallel::ControlBlock& block = control_.block();
  block.words()[parallel::kRequestWord] = requests;
  block.begin();
  for (const auto& shard : sums) {
    std::ranges::copy(shard, block.shard().begin());
    block.end_shard();
  }
  control_.finish();
}

}  // namespace lockstep::train
