// Adds normal noise to a field. Immutable: any thread may call it.
#pragma once

#include <string>

#include "lockstep/data/augment/field_transform.h"

namespace lockstep::data {

struct GaussianNoiseOptions {
  std::string field = "image";
  double mean = 0, stddev = 0.1;  // of the noise that is added to each element
};

// Changes a field of F32 or F64 and any shape but a scalar. Fields of different names get different noise.
class GaussianNoise : public FieldTransform {
 public:
  explicit GaussianNoise(GaussianNoiseOptions options);  // throws Error for a negative or infinite deviation

 private:
  Field changed(const Field& before) const override;
  void change(const SampleKey& key, const Field& before, const std::byte* in, std::byte* out) const override;

  GaussianNoiseOptions options_;
  std::string use_;  // the name of its random numbers
};

}  // namespace lockstep::data
