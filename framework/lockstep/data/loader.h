// Makes the batches of a data set in the sampler's order; threads read and transform them ahead. The number of threads
// does not change the batches. One thread at a time calls the loader. The data set must outlive it. next() throws the
// exception of a reader, and the position then stays before the failed batch.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "lockstep/data/batch_mix.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/pipeline.h"
#include "lockstep/data/prefetch.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

// Brings samples to this rank before they are read, as a SampleStore does (sample_store.h).
class SampleSupply {
 public:
  virtual ~SampleSupply() = default;
  // Makes samples readable, each once for every time that it is in the list. Called by next(), in the caller's thread,
  // for one step after the other: in the same calls of next() on all ranks.
  virtual void bring(std::span<const std::int64_t> samples) = 0;
  // Lets go of samples that bring() made readable; called by the loader's threads.
  virtual void release(std::span<const std::int64_t> samples) = 0;
  virtual void clear() = 0;  // lets go of all of them
};

struct LoaderOptions {
  int threads = 1;                        // 0: next() reads in the caller's thread
  int prefetch = 4;                       // limit of batches that are ready or being made
  std::optional<DType> floats{};          // F32 or F64: floating-point fields become this type; none: they stay
  std::shared_ptr<const BatchMix> mix{};  // mixes the samples of each batch, after their transforms; null: none
  SampleSupply* supply = nullptr;         // called for every step, if given; it must outlive the loader
  std::function<void(Batch&)> finish{};   // called by next(), in the caller's thread, with each batch before it returns
};

class Loader {
 public:
  Loader(const Dataset& dataset, DistributedSampler sampler, Transforms transforms = {}, LoaderOptions options = {});

  // Returns the next step's samples; after the last batch of an epoch, the next epoch begins. Throws Error for a sample
  // that cannot be read.
  Batch next();
  // Returns the batch that next() will return, once it is made; null where next() will throw. It is valid until then,
  // or until seek(). With a supply, all ranks must call it alike.
  const Batch* peek();
  // Returns a batch's memory to the loader, for a later batch.
  void recycle(Batch batch) { memory_.give_back(std::move(batch.fields)); }

  // Returns the position after the last batch that next() returned; batches that were only read ahead do not count.
  SamplerPosition position() const { return position_; }
  // Continues at `position`; throws Error if it is outside the data set.
  void seek(SamplerPosition position);

  // Returns the largest number of bytes that batches take: those read ahead, and one in use.
  std::size_t bytes() const;

  const DistributedSampler& sampler() const { return sampler_; }  // only for options() and steps_per_epoch()
  const std::vector<Field>& fields() const { return fields_; }
  const Dataset& dataset() const { return dataset_; }

  // Returns a range over the remaining steps of the current epoch: `for (Batch& batch : loader.epoch())`. The next
  // iteration reuses a batch's memory, unless the batch was moved from. After a break, position() includes the last
  // batch.
  class Epoch;
  Epoch epoch();

 private:
  struct Produced {
    Batch batch;
    SamplerPosition after;
  };
  struct Job {
    StepSamples step;
    SamplerPosition after;
  };
  using Prefetch = OrderedPrefetch<Job, Produced>;
  // Steps whose samples are there, for threads that have not claimed them yet.
  struct Supplied {
    std::mutex mutex;
    std::deque<Job> jobs;
    std::size_t brought = 0, returned = 0;  // steps, since the last seek()
  };

  void start();
  void supply_steps();
  Produced take();
  Job claim();
  Produced produce(Job job);
  std::vector<std::int64_t> samples_to_read(const StepSamples& step) const;
  std::vector<Tensor> make_samples(const StepSamples& step, std::span<const std::int64_t> samples);

  const Dataset& dataset_;
  DistributedSampler sampler_;
  LoaderOptions options_;
  Pipeline pipeline_;
  std::vector<Field> fields_;  // of a batch
  BatchMemory memory_;
  SamplerPosition position_;
  std::optional<Produced> peeked_;
  std::exception_ptr failed_;  // of a peek(): next() throws it
  Supplied supplied_;
  std::unique_ptr<Prefetch> prefetch_;  // last: its threads use the members above
};

class Loader::Epoch {
 public:
  class Iterator {
   public:
    Batch& operator*() { return epoch_->batch_; }
    Iterator& operator++() {
      epoch_->advance();
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return !epoch_->open_; }

   private:
    friend class Epoch;
    explicit Iterator(Epoch* epoch) : epoch_(epoch) {}
    Epoch* epoch_;
  };

  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class Loader;
  explicit Epoch(Loader& loader) : loader_(&loader), number_(loader.position().epoch) {}
  void advance();

  Loader* loader_;
  std::int64_t number_;
  Batch batch_;
  bool open_ = true;
};

}  // namespace lockstep::data
