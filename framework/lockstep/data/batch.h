// The samples of one step on one rank, field by field: a loader hands it to a training step, which then owns it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

struct Batch {
  std::vector<std::string> names{};
  std::vector<Tensor> fields{};  // dense, first dimension: the samples of this rank, maybe none
  StepSamples step{};

  std::int64_t samples() const { return static_cast<std::int64_t>(step.samples.size()); }
  const Tensor& at(std::string_view name) const { return fields[index_of(name)]; }
  Tensor& at(std::string_view name) { return fields[index_of(name)]; }

  // Position of a field; throws Error, with the known names, where no field has that name.
  std::size_t index_of(std::string_view name) const {
    std::string known;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return i;
      known += (i ? ", " : "") + names[i];
    }
    fail("batch", "no field '{}', there are: {}", name, known);
  }
};

}  // namespace lockstep::data
