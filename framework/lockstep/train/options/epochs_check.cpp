// The checks of validate_data() and validate_stream(): options against the samples of a run.
#include <algorithm>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/data/wrap_sets.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

constexpr auto kMostUpdates = static_cast<std::int64_t>(kMaxCount);
constexpr double kMostRateSteps = 1e6;

// Refuses a mean of weights that no epoch of the run would join. `steps`: updates in an epoch; the weights join at the
// end of an epoch, and a stream may end before its last one does.
void check_first_of_mean(const Options& o, std::int64_t updates, std::int64_t steps, bool is_stream) {
  if (o.trainer.average.swa_start == 0 || o.trial.find_lr) return;
  if (o.trial.overfit_batches > 0) steps = o.trial.overfit_batches;
  const std::int64_t ends = updates / steps + (is_stream && updates % steps > 0 ? 1 : 0);
  check(o.trainer.average.swa_start <= ends, kOptionsSite,
        "--swa-start is {} in a run of {} epochs (--max-steps {}), expected at most {}: no weights would join the mean",
        o.trainer.average.swa_start, formatted("{:.6g}", static_cast<double>(updates) / static_cast<double>(steps)),
        o.max_steps, ends);
}

// Checks options against the updates of the run: an epoch has `samples` samples, of a stream as many at most.
void validate_epochs(const Options& options, int world_size, std::int64_t samples, bool is_stream) {
  if (options.purpose() != data::Purpose::Train) return;
  const std::int64_t batch = global_batch(options, world_size);
  check(batch <= samples, kOptionsSite, "{} is {}{}, expected at most the {} training samples of {}",
        options.global_batch > 0 ? "--global-batch" : "--batch-size",
        options.global_batch > 0 ? options.global_batch : options.batch_size,
        options.global_batch > 0 ? "" : formatted(" on {} ranks (a global batch of {})", world_size, batch), samples,
        options.dataset.name);
  const std::int64_t steps =
      samples / batch + (options.remainder == data::Remainder::Keep && samples % batch > 0 ? 1 : 0);
  check(options.epochs <= kMostUpdates / steps, kOptionsSite,
        "--epochs is {} with {} updates in each, expected at most {} epochs; --epochs 0 --max-steps N trains N updates",
        options.epochs, steps, kMostUpdates / steps);
  const std::int64_t all = options.epochs > 0 ? options.epochs * steps : options.max_steps;
  const std::int64_t updates = options.max_steps > 0 ? std::min(all, options.max_steps) : all;
  const double epochs = static_cast<double>(updates) / static_cast<double>(steps);
  check(options.rate.kind != optim::ScheduleOptions::Kind::Step || !options.rate.milestones.empty() ||
            epochs / options.rate.step_epochs <= kMostRateSteps,
        kOptionsSite, "--step-epochs is {} in a run of {:.6g} epochs, expected at most {} steps of the rate",
        options.rate.step_epochs, epochs, kMostRateSteps);
  check(options.rate.kind != optim::ScheduleOptions::Kind::CosineRestarts ||
            epochs / options.rate.restart_epochs <= kMostRateSteps,
        kOptionsSite, "--restart-epochs is {} in a run of {:.6g} epochs, expected at most {} cosines",
        options.rate.restart_epochs, epochs, kMostRateSteps);
  check_first_of_mean(options, updates, steps, is_stream);
}

}  // namespace

void validate_data(const Options& options, int world_size, std::int64_t samples) {
  validate_epochs(options, world_size, samples, false);
}

void validate_stream(const Options& options, int world_size) {
  data::check_stream_options(options.dataset.samples);
  const std::int64_t batch = global_batch(options, world_size);
  check(options.trainer.shards == 0, kOptionsSite,
        "--shards is {}, expected 0: each rank trains its own stream, which cannot be divided into shards",
        options.trainer.shards);
  check(batch >= world_size, kOptionsSite, "--global-batch is {} on {} ranks, expected a sample for each rank", batch,
        world_size);
  std::int64_t samples = 0;  // of an epoch
  if (__builtin_mul_overflow(batch, options.stream.steps_per_epoch, &samples))
    samples = std::numeric_limits<std::int64_t>::max();
  validate_epochs(options, world_size, samples, true);
}

}  // namespace lockstep::train
