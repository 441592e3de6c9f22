#include "lockstep/data/loader.h"

#include <algorithm>
#include <utility>

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
      options_(std::move(options)),
      pipeline_(dataset.fields(), with_conversion(std::move(transforms), options_.floats)),
      fields_(options_.mix ? options_.mix->fields(pipeline_.fields()) : pipeline_.fields()),
      // With mixing, every thread has a second batch: the one before it.
      memory_(std::max(options_.prefetch, 0) + 1 + (options_.mix ? std::max(options_.threads, 1) : 0)),
      position_(sampler_.position()) {
  check(options_.threads >= 0, "loader", "{} threads, expected at least 0", options_.threads);
  check(options_.threads == 0 || options_.prefetch > 0, "loader", "prefetch {}, expected at least 1",
        options_.prefetch);
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
    options_.supply->bring(samples_to_read(step));
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

std::vector<Tensor> Loader::make_samples(const StepSamples& step, std::span<const std::int64_t> samples) {
  std::vector<Tensor> fields = memory_.take(pipeline_.fields(), std::ssize(samples));
  SampleMaker maker(pipeline_);
  const std::uint64_t seed = sampler_.options().seed;
  for (std::int64_t slot = 0; slot < std::ssize(samples); ++slot) {
    const std::int64_t index = samples[static_cast<std::size_t>(slot)];
    const SampleKey key{.seed = seed, .epoch = step.epoch, .index = index};
    dataset_.read_random(index, key, maker.source(fields, slot));
    maker.transform(key);
  }
  return fields;
}

// The samples of this rank's part of a step; with mixing, their neighbours in the step too.
std::vector<std::int64_t> Loader::samples_to_read(const StepSamples& step) const {
  std::vector<std::int64_t> samples = step.samples;
  if (!options_.mix) return samples;
  const Range needed = BatchMix::needed(step);
  if (needed.begin < step.local.begin) samples.insert(samples.begin(), step.before);
  if (needed.end > step.local.end) samples.push_back(step.after);
  return samples;
}

Loader::Produced Loader::produce(Job job) {
  Batch batch{.step = std::move(job.step)};
  for (const Field& field : fields_) batch.names.push_back(field.name);
  const std::vector<std::int64_t> samples = samples_to_read(batch.step);
  std::vector<Tensor> made = make_samples(batch.step, samples);
  if (options_.supply != nullptr) options_.supply->release(samples);
  if (options_.mix) {
    batch.fields = memory_.take(fields_, batch.samples());
    options_.mix->apply(batch.step, sampler_.options().seed, pipeline_.fields(), made, batch.fields);
    memory_.give_back(std::move(made));
  } else {
    batch.fields = std::move(made);
  }
  return {std::move(batch), job.after};
}

Loader::Produced Loader::take() {
  if (failed_) std::rethrow_exception(std::exchange(failed_, nullptr));
  if (peeked_) return *std::exchange(peeked_, std::nullopt);
  supply_steps();
  Produced produced = prefetch_->next().value();
  ++supplied_.returned;
  return produced;
}

const Batch* Loader::peek() {
  if (failed_) return nullptr;
  try {
    if (!peeked_) peeked_ = take();
    return &peeked_->batch;
  } catch (...) {
    // Not seek(): a supply would bring steps again that other ranks, which have read theirs, do not bring.
    failed_ = std::current_exception();
    return nullptr;
  }
}

Batch Loader::next() {
  try {
    Produced produced = take();
    if (options_.finish) options_.finish(produced.batch);
    position_ = produced.after;
    return std::move(produced.batch);
  } catch (...) {
    seek(position_);
    throw;
  }
}

void Loader::seek(SamplerPosition position) {
  peeked_.reset();
  failed_ = nullptr;
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
  const auto bytes_of = [](const std::vector<Field>& fields) {
    std::size_t bytes = 0;
    for (const Field& field : fields) bytes += field.bytes();
    return bytes;
  };
  const std::int64_t batches = options_.threads > 0 ? options_.prefetch + 1 : 1;
  const std::size_t ready = static_cast<std::size_t>(batches * samples) * bytes_of(fields_);
  if (!options_.mix) return ready;
  // The samples that are mixed, with a neighbour on each side.
  const std::int64_t mixed = std::max(options_.threads, 1) * (samples + 2);
  return ready + static_cast<std::size_t>(mixed) * bytes_of(pipeline_.fields());
}

Loader::Epoch Loader::epoch() { return Epoch(*this); }

void Loader::Epoch::advance() {
  if (!batch_.fields.empty()) loader_->recycle(std::move(batch_));
  batch_ = {};
  open_ = loader_->position().epoch == number_;
  if (open_) batch_ = loader_->next();
}

}  // namespace lockstep::data
