// Data sets made from the user's own data: arrays in memory (TensorDataset), a callback (FunctionDataset), and a part
// of another data set (SubsetDataset).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct NamedTensor {
  std::string name{};
  Tensor tensor{};  // the first dimension counts samples
};

class TensorDataset : public Dataset {
 public:
  // Takes the tensors over. Throws Error where they disagree on the number of samples; with `classes` > 0 an I32 field
  // "label" is checked to be in [0, classes).
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
  // As Dataset::read: any thread, any order.
  std::function<void(std::int64_t index, std::span<std::byte* const> out)> read{};
};

class FunctionDataset : public Dataset {
 public:
  explicit FunctionDataset(FunctionDatasetOptions options);

  std::int64_t size() const override { return options_.size; }
  const std::vector<Field>& fields() const override { return options_.fields; }
  std::int64_t classes() const override { return options_.classes; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  FunctionDatasetOptions options_;
};

// The samples of `whole` at `indices`, in that order.
class SubsetDataset : public Dataset {
 public:
  SubsetDataset(std::unique_ptr<Dataset> whole, std::vector<std::int64_t> indices);
  // The first `count` samples.
  static std::unique_ptr<SubsetDataset> first(std::unique_ptr<Dataset> whole, std::int64_t count);

  std::int64_t size() const override { return static_cast<std::int64_t>(indices_.size()); }
  const std::vector<Field>& fields() const override { return whole_->fields(); }
  std::int64_t classes() const override { return whole_->classes(); }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  std::unique_ptr<Dataset> whole_;
  std::vector<std::int64_t> indices_;
};

}  // namespace lockstep::data
