#include "lockstep/data/loader.h"

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

Transforms with_conversion(Transforms transforms, std::optional<DType> floats) {
  if (floats) transforms.push_back(std::make_shared<ConvertFloats>(*floats));
  return transforms;
}

}  // namespace

Loader::Loader(const Dataset& dataset, DistributedSampler sampler, Transforms transforms, LoaderOptions options)
    : dataset_(dataset),
      sampler_(std::move(sampler)),
      options_(options),
      pipeline_(dataset.fields(), with_conversion(std::move(transforms), options.floats)),
      memory_(std::max(options.prefetch, 0) + 1),
      position_(sampler_.position()) {
  check(options.threads >= 0, "loader", "{} threads, expected at least 0", options.threads);
  check(options.threads == 0 || options.prefetch > 0, "loader", "prefetch {}, expected at least 1", options.prefetch);
  const SamplerOptions& sampling = sampler_.options();
  const std::int64_t expected = sampling.order != nullptr ? sampling.order->samples() : sampling.size;
  check(expected == dataset.size(), "loader", "the sampler is for {} samples, the data set has {} ({})", expected,
        dataset.size(), dataset.describe());
  start();
}

void Loader::start() {
  prefetch_ =
      std::make_unique<Prefetch>(Prefetch::Options{.claim = [this] { return std::optional<Job>(claim()); },
                                                   .produce = [this](Job job) { return produce(std::move(job)); },
                                                   .threads = options_.threads,
                                                   .ahead = static_cast<std::size_t>(options_.prefetch)});
}

// With a supply, brings the samples of the steps that threads may claim until the next call: one step more than they
// may work ahead, as the result that next() returns makes room for another one. So claim() always finds a step, and all
// ranks bring the same steps in the same call, however fast their threads are.
void Loader::supply_steps() {
  if (options_.supply == nullptr) return;
  const std::size_t ahead = options_.threads > 0 ? static_cast<std::size_t>(options_.prefetch) + 1 : 1;
  for (; supplied_.brought < supplied_.returned + ahead; ++supplied_.brought) {
    StepSamples step = sampler_.next();
    options_.supply->bring(step.samples);
    const std::scoped_lock lock(supplied_.mutex);
    supplied_.jobs.push_back({std::move(step), sampler_.position()});
  }
}

Loader::Job Loader::claim() {
  if (options_.supply == nullptr) {
    StepSamples step = sampler_.next();
    return {std::move(step), sampler_.position()};
  }
  const std::scoped_lock lock(supplied_.mutex);
  check(!supplied_.jobs.empty(), "loader", "a step was claimed whose samples were not brought");
  Job job = std::move(supplied_.jobs.front());
  supplied_.jobs.pop_front();
  return job;
}

Loader::Produced Loader::produce(Job job) {
  Batch batch{.names = pipeline_.names(), .step = std::move(job.step)};
  batch.fields = memory_.take(pipeline_.fields(), batch.samples());
  SampleMaker maker(pipeline_);
  const std::uint64_t seed = sampler_.options().seed;
  for (std::int64_t slot = 0; slot < batch.samples(); ++slot) {
    const std::int64_t index = batch.step.samples[static_cast<std::size_t>(slot)];
    dataset_.read(index, maker.source(batch.fields, slot));
    maker.transform({.seed = seed, .epoch = batch.step.epoch, .index = index});
  }
  if (options_.supply != nullptr) options_.supply->release(batch.step.samples);
  return {std::move(batch), job.after};
}

Batch Loader::next() {
  try {
    supply_steps();
    Produced produced = prefetch_->next().value();
    ++supplied_.returned;
    position_ = produced.after;
    return std::move(produced.batch);
  } catch (...) {
    seek(position_);
    throw;
  }
}

void Loader::seek(SamplerPosition position) {
  prefetch_.reset();  // its threads use the sampler
  supplied_.jobs.clear();
  supplied_.brought = supplied_.returned = 0;
  if (options_.supply != nullptr) options_.supply->clear();
  start();
  sampler_.seek(position);
  position_ = sampler_.position();
}

std::size_t Loader::bytes() const {
  const SamplerOptions& o = sampler_.options();
  std::int64_t samples = 0;
  for (std::int64_t shard = o.my_shards.begin; shard < o.my_shards.end; ++shard)
    samples += part_of(std::min(o.global_batch, o.size), o.shards, shard).size();
  std::size_t sample_bytes = 0;
  for (const Field& field : pipeline_.fields()) sample_bytes += field.bytes();
  const std::int64_t batches = options_.threads > 0 ? options_.prefetch + 1 : 1;
  return static_cast<std::size_t>(batches * samples) * sample_bytes;
}

Loader::Epoch Loader::epoch() { return Epoch(*this); }

void Loader::Epoch::advance() {
  if (!batch_.fields.empty()) loader_->recycle(std::move(batch_));
  batch_ = {};
  open_ = loader_->position().epoch == number_;
  if (open_) batch_ = loader_->next();
}

}  // namespace lockstep::data
