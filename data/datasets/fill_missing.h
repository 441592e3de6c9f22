// Numbers in place of the missing values of tables, which are NaN: the means of their columns.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset_view.h"

namespace lockstep::datasets {

// Returns the mean of each element of the field, F32 or F64, over the samples in which it is a number: NaN where it is
// one in none. The sums, in f64, are those of the samples in their order. Throws what reading a sample throws.
std::vector<double> means_of(const data::Dataset& dataset, std::string_view field);

// The samples of another set, with `values[i]` where element i of the field is NaN. Any thread may read.
class FilledDataset : public data::DatasetView {
 public:
  // Throws Error for a field that is not there, of another type, or of another number of elements.
  FilledDataset(std::shared_ptr<const data::Dataset> whole, std::string_view field, std::vector<double> values);

  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const data::SampleKey& key, std::span<std::byte* const> out) const override;

 private:
  void fill(std::byte* sample) const;

  std::size_t field_;
  DType dtype_;
  std::vector<double> values_;
};

}  // namespace lockstep::datasets
