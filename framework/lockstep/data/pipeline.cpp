#include "lockstep/data/pipeline.h"

#include <algorithm>

namespace lockstep::data {
namespace {

bool fits(const std::vector<Tensor>& tensors, const std::vector<Field>& fields, std::int64_t samples) {
  return std::ranges::equal(tensors, fields, [&](const Tensor& tensor, const Field& field) {
    return tensor.dtype() == field.dtype && tensor.shape() == field.shape.batched(samples);
  });
}

}  // namespace

Pipeline::Pipeline(std::vector<Field> source, Transforms transforms) : transforms_(std::move(transforms)) {
  check_fields("data pipeline", source);
  stages_.push_back(std::move(source));
  for (std::size_t i = 0; i < transforms_.size(); ++i) {
    check(transforms_[i] != nullptr, "data pipeline", "transform {} is null", i);
    stages_.push_back(transforms_[i]->fields(stages_.back()));
    check_fields("data pipeline", stages_.back());
  }
}

std::vector<std::string> Pipeline::names() const {
  std::vector<std::string> names;
  for (const Field& field : fields()) names.push_back(field.name);
  return names;
}

SampleMaker::SampleMaker(const Pipeline& pipeline) : pipeline_(pipeline), pointers_(pipeline.stages_.size()) {
  for (std::size_t stage = 0; stage + 1 < pipeline.stages_.size(); ++stage) {
    std::vector<Tensor>& tensors = memory_.emplace_back();
    for (const Field& field : pipeline.stages_[stage]) {
      tensors.emplace_back(field.shape, field.dtype);
      pointers_[stage].push_back(tensors.back().raw());
    }
  }
  pointers_.back().resize(pipeline.fields().size());
}

std::span<std::byte* const> SampleMaker::source(std::vector<Tensor>& batch, std::int64_t slot) {
  const std::vector<Field>& fields = pipeline_.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::size_t bytes = fields[i].bytes();
    pointers_.back()[i] = bytes > 0 ? batch[i].raw() + static_cast<std::size_t>(slot) * bytes : nullptr;
  }
  return pointers_.front();
}

void SampleMaker::transform(const SampleKey& key) {
  for (std::size_t i = 0; i < pipeline_.transforms_.size(); ++i) {
    pipeline_.transforms_[i]->apply(key, pipeline_.stages_[i], pointers_[i], pointers_[i + 1]);
  }
}

std::vector<Tensor> BatchMemory::take(const std::vector<Field>& fields, std::int64_t samples) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::ranges::find_if(spare_, [&](const auto& spare) { return fits(spare, fields, samples); });
    if (found != spare_.end()) {
      std::vector<Tensor> tensors = std::move(*found);
      spare_.erase(found);
      return tensors;
    }
  }
  std::vector<Tensor> tensors;
  for (const Field& field : fields) tensors.emplace_back(field.shape.batched(samples), field.dtype);
  return tensors;
}

void BatchMemory::give_back(std::vector<Tensor> tensors) {
  const std::scoped_lock lock(mutex_);
  if (spare_.size() == most_) spare_.erase(spare_.begin());
  spare_.push_back(std::move(tensors));
}

}  // namespace lockstep::data
