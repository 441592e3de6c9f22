// Data sets made of others: several in a row, and the parts of a split. Any thread may read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

// The samples of `parts` one part after the other.
class ConcatDataset : public Dataset {
 public:
  // Throws Error unless there is a part, and all parts have the same fields and number of classes.
  explicit ConcatDataset(std::vector<std::unique_ptr<Dataset>> parts);

  std::int64_t size() const override { return first_.back(); }
  const std::vector<Field>& fields() const override { return parts_.front()->fields(); }
  std::int64_t classes() const override { return parts_.front()->classes(); }
  std::string describe() const override;
  std::string locate(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override;
  bool is_random() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const override;

  // The number of samples of each part, for mixture_weights() (sample_order.h).
  std::vector<std::int64_t> sizes() const;

 private:
  std::size_t part_of_sample(std::int64_t index) const;

  std::vector<std::unique_ptr<Dataset>> parts_;
  std::vector<std::int64_t> first_;  // the first sample of each part, and the number of all samples
};

// Divides samples 0 to size - 1 at random into parts of about these fractions of all samples, which must be positive
// and sum to at most 1; the remaining samples are in no part. The part of a sample depends on (seed, index) alone, so
// samples that are appended later change no other sample's part. Indices of a part rise.
std::vector<std::vector<std::int64_t>> split_by_fraction(std::int64_t size, const std::vector<double>& fractions,
                                                         std::uint64_t seed);
// The same as data sets.
std::vector<std::unique_ptr<Dataset>> split_dataset(std::unique_ptr<Dataset> whole,
                                                    const std::vector<double>& fractions, std::uint64_t seed);

// Reads sample indices from a text file, one per line; empty lines and text after a '#' are skipped. Throws Error
// with file and line for anything else. SubsetDataset checks the range.
std::vector<std::int64_t> read_indices(const std::filesystem::path& path);
// The same for numbers that are finite, such as the weights of samples.
std::vector<double> read_numbers(const std::filesystem::path& path);

}  // namespace lockstep::data
