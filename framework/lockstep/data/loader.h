// Batches of a data set in the sampler's order, read and transformed ahead by threads; the same batches at any number
// of threads. One caller thread. The data set must outlive the loader. An exception of a reader leaves next(), and the
// position stays before the batch that failed.
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

#include "lockstep/data/dataset.h"
#include "lockstep/data/pipeline.h"
#include "lockstep/data/prefetch.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

struct LoaderOptions {
  int threads = 1;                // 0: next() reads
  int prefetch = 4;               // batches ready or in the making, at most
  std::optional<DType> floats{};  // F32 or F64: the type that floating fields get; none: their own
};

class Loader {
 public:
  Loader(const Dataset& dataset, DistributedSampler sampler, Transforms transforms = {}, LoaderOptions options = {});

  // The next step's samples, without end: epochs follow each other.
  Batch next();
  // Lets a later batch use this one's memory.
  void recycle(Batch batch) { memory_.give_back(std::move(batch.fields)); }

  // The position after the last batch that next() returned; batches read ahead do not count.
  SamplerPosition position() const { return position_; }
  void seek(SamplerPosition position);

  // Bytes of its batches at most: those read ahead, and one in use.
  std::size_t bytes() const;

  const DistributedSampler& sampler() const { return sampler_; }  // for its options and steps_per_epoch() alone
  const std::vector<Field>& fields() const { return pipeline_.fields(); }

  // The remaining steps of the current epoch, once: `for (Batch& batch : loader.epoch())`. A batch's memory is used
  // again when the loop goes on, unless the batch was moved from. After a break, position() includes the last batch.
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

  void start();
  Produced produce(Job job);

  const Dataset& dataset_;
  DistributedSampler sampler_;
  LoaderOptions options_;
  Pipeline pipeline_;
  BatchMemory memory_;
  SamplerPosition position_;
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
