// Random images with random labels, for benchmarks: a sample takes one copy, for any shape. Sample i is a function of
// (seed, i): a window of a shared pool of noise, so images overlap. A model cannot learn anything from them. Any thread
// may read samples.
#pragma once

#include <cstdint>

#include "lockstep/core/tensor.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

struct SyntheticOptions {
  Shape shape = {3, 224, 224};  // channels, height, width
  std::int64_t classes = 1000, size = 10000;
  DType dtype = DType::U8;  // U8: uniform on 0 to 255; F32: uniform with mean 0 and variance 1
  std::uint64_t seed = 0;
};

class SyntheticDataset : public data::Dataset {
 public:
  explicit SyntheticDataset(SyntheticOptions options);

  std::int64_t size() const override { return options_.size; }
  const std::vector<data::Field>& fields() const override { return fields_; }
  std::int64_t classes() const override { return options_.classes; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  SyntheticOptions options_;
  std::vector<data::Field> fields_;
  Tensor pool_;
};

// Returns the entry of the catalogue. The seed is that of the run, not that of `options`. Evaluation has 128 samples
// unless
// --limit-eval sets more.
data::DatasetEntry synthetic_entry(const SyntheticOptions& options = {});

}  // namespace lockstep::datasets
