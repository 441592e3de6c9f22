// A data set whose decoded samples stay in memory, up to a limit of bytes: later epochs read these samples from memory.
// Samples stay in the order of their first read and none is dropped: with a new permutation each epoch, every sample is
// equally likely to be read next, so a replacement would gain nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "lockstep/data/dataset_view.h"

namespace lockstep::data {

// Any thread may read. Transforms follow later, so random augmentation still differs by epoch.
class CachedDataset : public DatasetView {
 public:
  // Keeps at most `most_bytes` of samples, on this rank. Throws Error if `whole` is null, or makes random choices while
  // it reads.
  CachedDataset(std::shared_ptr<const Dataset> whole, std::size_t most_bytes);

  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const SampleKey& /*key*/, std::span<std::byte* const> out) const override {
    read(index, out);
  }

  std::size_t bytes() const { return used_; }  // of the samples in memory

 private:
  std::mutex& lock_of(std::int64_t index) const { return locks_[static_cast<std::size_t>(index) % locks_.size()]; }
  bool copy_cached(std::int64_t index, std::span<std::byte* const> out) const;
  bool reserve() const;

  std::size_t sample_bytes_ = 0, most_bytes_;
  mutable std::array<std::mutex, 64> locks_;
  mutable std::vector<std::unique_ptr<std::byte[]>> samples_;  // by index, each under its lock; null: not in memory
  mutable std::atomic<std::size_t> used_ = 0;
};

}  // namespace lockstep::data
