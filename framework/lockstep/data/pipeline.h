// Takes a sample from its source through transforms into a batch, and reuses the memory of batches. A Pipeline is
// immutable and shared by loader threads; each thread has its own SampleMaker. BatchMemory has a lock.

// The fields of a sample before and after each transform.
#pragma once

#include <mutex>
#include <vector>

#include "lockstep/data/batch.h"
#include "lockstep/data/transforms.h"

namespace lockstep::data {

class Pipeline {
 public:
  // Throws Error if a transform does not accept the fields before it.
  Pipeline(std::vector<Field> source, Transforms transforms);

  const std::vector<Field>& fields() const { return stages_.back(); }  // after all transforms
  std::vector<std::string> names() const;

 private:
  friend class SampleMaker;
  std::vector<std::vector<Field>> stages_;  // the source's fields, then those after each transform
  Transforms transforms_;
};

// Makes samples of a batch, one after the other, in one thread.
class SampleMaker {
 public:
  explicit SampleMaker(const Pipeline& pipeline);  // the pipeline must outlive this object

  // Returns the memory, one pointer per field, to which the source writes the sample with index `slot` of `batch`.
  std::span<std::byte* const> source(std::vector<Tensor>& batch, std::int64_t slot);
  // Applies the transforms to the sample in that memory and writes the result to the batch.
  void transform(const SampleKey& key);

 private:
  const Pipeline& pipeline_;
  std::vector<std::vector<Tensor>> memory_;        // memory for the sample before each transform
  std::vector<std::vector<std::byte*>> pointers_;  // into memory_; the last ones into the batch
};

// Allocates the tensors of batches, and reuses returned ones of the same size. Any thread.
class BatchMemory {
 public:
  // Keeps at most `spare` unused batches: the number that loader threads may take before one is returned.
  explicit BatchMemory(int spare) : most_(static_cast<std::size_t>(spare)) {}

  // Returns one tensor per field, each of shape (samples, field's dimensions ...), with undefined values.
  std::vector<Tensor> take(const std::vector<Field>& fields, std::int64_t samples);
  void give_back(std::vector<Tensor> tensors);

 private:
  std::size_t most_;
  std::mutex mutex_;
  std::vector<std::vector<Tensor>> spare_;
};

}  // namespace lockstep::data
