#include "lockstep/data/array_datasets.h"

#include <fmt/format.h>

#include <cstring>
#include <numeric>

#include "lockstep/core/error.h"

namespace lockstep::data {

TensorDataset::TensorDataset(std::vector<NamedTensor> tensors, std::int64_t classes)
    : tensors_(std::move(tensors)), classes_(classes) {
  constexpr std::string_view kArraysSite = "tensor data set";
  for (const auto& [name, tensor] : tensors_) {
    check(tensor.shape().rank() > 0, kArraysSite, "'{}' is a scalar, expected a first dimension that counts samples",
          name);
    fields_.push_back({name, tensor.shape().tail(), tensor.dtype()});
    if (fields_.size() == 1) size_ = tensor.shape()[0];
    check(tensor.shape()[0] == size_, kArraysSite, "'{}' has {} samples, '{}' has {}; expected equal numbers", name,
          tensor.shape()[0], tensors_.front().name, size_);
    if (classes <= 0 || name != "label" || tensor.dtype() != DType::I32) continue;
    const auto labels = tensor.data<std::int32_t>();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      check(labels[i] >= 0 && labels[i] < classes, kArraysSite, "'label': element {} is {}, expected 0 to {}", i,
            labels[i], classes - 1);
    }
  }
  check_fields(kArraysSite, fields_);
}

std::string TensorDataset::describe() const { return fmt::format("arrays in memory: {} samples", size_); }

void TensorDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::size_t bytes = fields_[i].bytes();
    if (bytes > 0) std::memcpy(out[i], tensors_[i].tensor.raw() + static_cast<std::size_t>(index) * bytes, bytes);
  }
}

FunctionDataset::FunctionDataset(FunctionDatasetOptions options) : options_(std::move(options)) {
  check_fields(options_.description, options_.fields);
  check(options_.size >= 0, options_.description, "size {}, expected at least 0", options_.size);
  check(options_.read != nullptr, options_.description,
        "the function `read` is empty, expected one that reads samples");
}

std::string FunctionDataset::describe() const { return fmt::format("{}: {} samples", options_.description, size()); }

void FunctionDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  options_.read(index, out);
}

SubsetDataset::SubsetDataset(std::shared_ptr<const Dataset> whole, std::vector<std::int64_t> indices)
    : DatasetView(std::move(whole), "subset"), indices_(std::move(indices)) {
  for (std::int64_t index : indices_) {
    check(index >= 0 && index < this->whole().size(), "subset", "{}: index {}, expected 0 to {}",
          this->whole().describe(), index, this->whole().size() - 1);
  }
}

std::unique_ptr<SubsetDataset> SubsetDataset::first(std::shared_ptr<const Dataset> whole, std::int64_t count) {
  check(count >= 0, "subset", "count {}, expected at least 0", count);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return std::make_unique<SubsetDataset>(std::move(whole), std::move(indices));
}

std::string SubsetDataset::describe() const { return fmt::format("{} of {}", size(), whole().describe()); }

void SubsetDataset::read(std::int64_t index, std::span<std::byte* const> out) const { whole().read(at(index), out); }

void SubsetDataset::read_random(std::int64_t index, const SampleKey& key, std::span<std::byte* const> out) const {
  whole().read_random(at(index), key, out);
}

}  // namespace lockstep::data
