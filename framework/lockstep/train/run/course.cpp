#include "lockstep/train/run/course.h"

#include <algorithm>

#include "lockstep/parallel/tree/world_layout.h"

namespace lockstep::train {
namespace {

std::unique_ptr<data::Loader> training_loader(const RunFacts& facts, const Trainer& trainer) {
  if (facts.data.stream) return nullptr;
  return std::make_unique<data::Loader>(
      *facts.data.train,
      trainer.sampler(*facts.data.train, {.shuffle = facts.options.trial.overfit_batches == 0,
                                          .remainder = facts.options.remainder,
                                          .order = facts.data.epoch.order,
                                          .shuffle_block = facts.options.dataset.samples.shuffle_block}),
      facts.data.train_transforms,
      data::LoaderOptions{
          .threads = facts.threads.loaders, .mix = facts.data.epoch.mix, .supply = facts.data.epoch.supply});
}

// Evaluation has no micro-batches: a step of it is as large as a micro-batch of training on all ranks.
std::unique_ptr<data::Loader> evaluation_loader(const RunFacts& facts, const Trainer& trainer,
                                                const data::Dataset& set) {
  const std::int64_t batch =
      std::max(trainer.world().tree.shards(), trainer.options().global_batch / trainer.options().accumulate);
  return std::make_unique<data::Loader>(
      set, trainer.sampler(set, {.shuffle = false, .global_batch = batch}), facts.data.eval_transforms,
      data::LoaderOptions{.threads = facts.threads.loaders, .finish = facts.data.prediction.finish});
}

}  // namespace

Course::Course(const RunFacts& facts, const Trainer& trainer)
    : facts_(facts),
      training_(training_loader(facts, trainer)),
      stream_(facts.data.stream ? std::make_unique<StreamCourse>(facts) : nullptr),
      schedule_(optim::make_schedule(facts.options.rate, schedule_epochs(), facts.global_batch())) {
  if (facts.data.eval) evaluation_ = evaluation_loader(facts, trainer, *facts.data.eval);
  for (const auto& [name, set] : facts.data.more_eval) {
    more_evaluations_.emplace(name, evaluation_loader(facts, trainer, *set));
  }
}

std::int64_t Course::evaluation_samples() const {
  std::int64_t samples = facts_.data.eval ? facts_.data.eval->size() : 0;
  for (const auto& [name, set] : facts_.data.more_eval) samples += set->size();
  return samples;
}

std::size_t Course::bytes() const {
  std::size_t bytes = (stream_ ? stream_->bytes() : training_->bytes()) + (evaluation_ ? evaluation_->bytes() : 0);
  for (const auto& [name, loader] : more_evaluations_) bytes += loader->bytes();
  return bytes;
}

double Course::epochs_done() const {
  const data::SamplerPosition at = position();
  return static_cast<double>(at.epoch) + static_cast<double>(at.offset) / static_cast<double>(epoch_size());
}

void Course::recycle(data::Batch batch) {
  stream_ ? stream_->recycle(std::move(batch)) : training_->recycle(std::move(batch));
}

std::int64_t Course::steps_per_epoch() const {
  return stream_ ? facts_.options.stream.steps_per_epoch : training_->sampler().steps_per_epoch();
}

std::int64_t Course::step_in_epoch() const {
  const std::int64_t offset = position().offset;
  return stream_ ? offset : offset / facts_.global_batch();
}

std::int64_t Course::epoch_size() const { return stream_ ? steps_per_epoch() : facts_.data.epoch_samples(); }

std::int64_t Course::total_steps() const {
  const Options& o = facts_.options;
  if (o.epochs == 0) return o.max_steps;
  const std::int64_t all = o.epochs * steps_per_epoch();
  return o.max_steps > 0 ? std::min(all, o.max_steps) : all;
}

double Course::schedule_epochs() const {
  return static_cast<double>(total_steps()) / static_cast<double>(steps_per_epoch());
}

bool Course::is_done(std::int64_t updates) const {
  const Options& o = facts_.options;
  return ended_ || (o.max_steps > 0 && updates >= o.max_steps) || (o.epochs > 0 && position().epoch >= o.epochs) ||
         (stream_ && stream_->ended());
}

void Course::check_last_batch(const Trainer& trainer) const {
  if (stream_) return;
  const std::int64_t rest = facts_.data.epoch_samples() % facts_.global_batch();
  const bool kept = facts_.options.remainder == data::Remainder::Keep;
  if (rest > 0 && kept && total_steps() >= steps_per_epoch()) trainer.check_batch(rest);
}

}  // namespace lockstep::train
