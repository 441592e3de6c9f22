// The way of a sample from its source through transforms into a batch, and the memory of batches. A Pipeline is
// immutable and shared by loader threads; each has a SampleMaker of its own. BatchMemory is locked inside.
#pragma once

#include <mutex>
#include <vector>

#include "lockstep/data/batch.h"
#include "lockstep/data/transforms.h"

namespace lockstep::data {

class Pipeline {
 public:
  // Throws Error if a transform cannot take the fields before it.
  Pipeline(std::vector<Field> source, Transforms transforms);

  const std::vector<Field>& fields() const { return stages_.back(); }  // after all transforms
  std::vector<std::string> names() const;

 private:
  friend class SampleMaker;
  std::vector<std::vector<Field>> stages_;  // the source's fields, then those after each transform
  Transforms transforms_;
};

class SampleMaker {
 public:
  explicit SampleMaker(const Pipeline& pipeline);  // keeps a reference

  // Where the source writes the sample that becomes number `slot` of a batch's fields.
  std::span<std::byte* const> source(std::vector<Tensor>& batch, std::int64_t slot);
  // Takes the sample written there into the batch.
  void transform(const SampleKey& key);

 private:
  const Pipeline& pipeline_;
  std::vector<std::vector<Tensor>> memory_;        // a sample before each transform
  std::vector<std::vector<std::byte*>> pointers_;  // into memory_, and at the end into the batch
};

// Hands out the tensors of batches, used ones again if the size fits.
class BatchMemory {
 public:
  // Keeps at most `spare` unused batches: as many as loader threads may take before one comes back.
  explicit BatchMemory(int spare) : most_(static_cast<std::size_t>(spare)) {}

  std::vector<Tensor> take(const std::vector<Field>& fields, std::int64_t samples);
  void give_back(std::vector<Tensor> tensors);

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::vector<std::vector<Tensor>> spare_;
};

}  // namespace lockstep::data
