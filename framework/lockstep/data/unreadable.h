// Samples that cannot be read: without this class, the run stops with the error of the data set, which
// names file and sample. ReplaceUnreadable logs it, counts it, and gives the next sample that can be read instead, so
// all samples after it are what they would be without the damage, at any number of ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "lockstep/data/dataset_view.h"

namespace lockstep::data {

enum class Unreadable : std::uint8_t { Stop, Replace };

struct ReplaceOptions {
  // After this many unreadable samples in a row the error stops the run: the file system is gone, or the wrong folder
  // was given.
  std::int64_t most_in_a_row = 100;
  // Warnings that are logged, one for each sample; later samples are only counted.
  std::int64_t most_warnings = 20;
};

class ReplaceUnreadable : public DatasetView {
 public:
  // Throws Error for numbers below 1.
  explicit ReplaceUnreadable(std::shared_ptr<const Dataset> whole, ReplaceOptions options = {});

  // Sample `index`; if it throws Error, then index + 1, and so on, from 0 after the last one. The random choices stay
  // those of the key.
  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const override;

  std::int64_t replaced() const;                 // reads, on this rank, that gave another sample
  std::vector<std::int64_t> unreadable() const;  // samples that this rank could not read, ascending

 private:
  template <class Read>
  void read_next(std::int64_t index, const Read& read) const;
  void note(std::int64_t index, const std::string& message) const;

  ReplaceOptions options_;
  mutable std::mutex mutex_;  // of the members below
  mutable std::int64_t replaced_ = 0;
  mutable std::set<std::int64_t> unreadable_;
};

}  // namespace lockstep::data
