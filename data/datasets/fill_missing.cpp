#include "data/datasets/fill_missing.h"

#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/data/sample_buffers.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kFillSite = "data";

// Calls f(pointer to the first element as its type).
template <class F>
auto with_type(DType dtype, std::byte* sample, const F& f) {
  return dtype == DType::F64 ? f(reinterpret_cast<double*>(sample)) : f(reinterpret_cast<float*>(sample));
}

void check_type(const data::Field& field) {
  check(field.dtype == DType::F32 || field.dtype == DType::F64, kFillSite,
        "missing values of '{}', which is {}, expected f32 or f64", field.name, name_of(field.dtype));
}

}  // namespace

std::vector<double> means_of(const data::Dataset& dataset, std::string_view field) {
  const std::vector<data::Field>& fields = dataset.fields();
  const std::size_t at = data::find_field(kFillSite, fields, field);
  check_type(fields[at]);
  data::SampleBuffers buffers(fields);
  const auto elements = static_cast<std::size_t>(fields[at].shape.elements());
  std::vector<double> sums(elements), counts(elements);
  for (std::int64_t sample = 0; sample < dataset.size(); ++sample) {
    dataset.read(sample, buffers.out);
    with_type(fields[at].dtype, buffers.out[at], [&](const auto* values) {
      for (std::size_t i = 0; i < elements; ++i) {
        if (std::isnan(values[i])) continue;
        sums[i] += static_cast<double>(values[i]);
        ++counts[i];
      }
    });
  }
  for (std::size_t i = 0; i < elements; ++i) sums[i] /= counts[i];
  return sums;
}

FilledDataset::FilledDataset(std::shared_ptr<const data::Dataset> whole, std::string_view field,
                             std::vector<double> values)
    : DatasetView(std::move(whole), kFillSite),
      field_(data::find_field(kFillSite, fields(), field)),
      dtype_(fields()[field_].dtype),
      values_(std::move(values)) {
  check_type(fields()[field_]);
  check(std::ssize(values_) == fields()[field_].shape.elements(), kFillSite,
        "{} numbers for the missing values of '{}', expected {}", values_.size(), field,
        fields()[field_].shape.elements());
}

void FilledDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  DatasetView::read(index, out);
  fill(out[field_]);
}

void FilledDataset::read_random(std::int64_t index, const data::SampleKey& key, std::span<std::byte* const> out) const {
  DatasetView::read_random(index, key, out);
  fill(out[field_]);
}

void FilledDataset::fill(std::byte* sample) const {
  with_type(dtype_, sample, [&](auto* values) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (std::isnan(values[i])) values[i] = static_cast<std::remove_reference_t<decltype(*values)>>(values_[i]);
    }
  });
}

}  // namespace lockstep::datasets
