// Data sets of the user's own data: arrays in memory (TensorDataset), a function (FunctionDataset), and a part of
// another data set (SubsetDataset). After construction, any number of threads may call read().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/data/dataset_view.h"

namespace lockstep::data {

struct NamedTensor {
  std::string name{};
  Tensor tensor{};  // the first dimension counts samples
};

// Samples from arrays in memory: field i of sample s is tensors[i][s].
class TensorDataset : public Dataset {
 public:
  // Takes ownership of the tensors. Throws Error if their numbers of samples differ or, with `classes` > 0, if an I32
  // field "label" has an element outside [0, classes).
  explicit TensorDataset(std::vector<NamedTensor> tensors, std::int64_t classes = 0);

  std::int64_t size() const override { return size_; }
  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return classes_; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  std::vector<NamedTensor> tensors_;
  std::vector<Field> fields_;
  std::int64_t size_ = 0, classes_ = 0;
};

struct FunctionDatasetOptions {
  std::int64_t size = 0;
  std::vector<Field> fields{};
  std::int64_t classes = 0;
  std::string description = "function";
  // Writes one sample, as Dataset::read(): called by any thread, in any order.
  std::function<void(std::int64_t index, std::span<std::byte* const> out)> read{};
};

// Samples from a function of the user.
class FunctionDataset : public Dataset {
 public:
  // Throws Error for a negative size, invalid fields (check_fields()), or an empty function.
  explicit FunctionDataset(FunctionDatasetOptions options);

  std::int64_t size() const override { return options_.size; }
  const std::vector<Field>& fields() const override { return options_.fields; }
  std::int64_t classes() const override { return options_.classes; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  FunctionDatasetOptions options_;
};

// Some samples of another data set: sample i is sample indices[i] of `whole`.
class SubsetDataset : public DatasetView {
 public:
  // Throws Error for an index outside [0, whole->size()).
  SubsetDataset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices);
  // Makes a data set of the first `count` samples; throws Error for a count outside [0, whole->size()].
  static std::unique_ptr<SubsetDataset> first(std::shared_ptr<const Dataset> whole, std::int64_t count);

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  std::string describe() const override;
  std::string locate(std::int64_t index) const override { return whole().locate(at(index)); }
  std::int32_t label(std::int64_t index) const override { return whole().label(at(index)); }
  std::int64_t origin(std::int64_t index) const override { return whole().origin(at(index)); }
  void read(std::int64_t index, std::span<std::byte* const> out) const override;
  void read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const override;

 private:
  std::int64_t at(std::int64_t index) const {
    check_index(index);
    return indices_[static_cast<std::size_t>(index)];
  }

  std::vector<std::int64_t> indices_;
};

}  // namespace lockstep::data
