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

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// Any thread may read. Transforms follow later, so random augmentation still differs by epoch.
class CachedDataset : public Dataset {
 public:
  // Keeps at most `most_bytes` of samples, on this rank. Throws Error if `whole` is null.
  CachedDataset(std::unique_ptr<Dataset> whole, std::size_t most_bytes);

  std::int64_t size() const override { return whole_->size(); }
  const std::vector<Field>& fields() const override { return whole_->fields(); }
  std::int64_t classes() const override { return whole_->classes(); }
  std::string describe() const override { return whole_->describe(); }
  std::string locate(std::int64_t index) const override { return whole_->locate(index); }
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  std::size_t bytes() const { return used_; }                      // of the samples in memory
  std::int64_t reads_from_memory() const { return from_memory_; }  // since construction

 private:
  std::mutex& lock_of(std::int64_t index) const { return locks_[static_cast<std::size_t>(index) % locks_.size()]; }
  bool copy_cached(std::int64_t index, std::span<std::byte* const> out) const;
  bool reserve() const;

  std::unique_ptr<Dataset> whole_;
  std::size_t sample_bytes_ = 0, most_bytes_;
  mutable std::array<std::mutex, 64> locks_;
  mutable std::vector<std::unique_ptr<std::byte[]>> samples_;  // by index, each under its lock; null: not in memory
  mutable std::atomic<std::size_t> used_ = 0;
  mutable std::atomic<std::int64_t> from_memory_ = 0;
};

}  // namespace lockstep::data
