// The samples of one step on one rank, field by field. A loader makes it and passes ownership to its caller.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/tensor.h"
#include "lockstep/data/sampler.h"

namespace lockstep::data {

struct Batch {
  std::vector<std::string> names{};
  std::vector<Tensor> fields{};  // dense, (samples of this rank, field's dimensions ...); the number may be 0
  StepSamples step{};

  std::int64_t samples() const { return static_cast<std::int64_t>(step.samples.size()); }
  // Returns the field called `name`; throws Error, with the known names, if there is none.
  const Tensor& at(std::string_view name) const { return fields[index_of(name)]; }
  Tensor& at(std::string_view name) { return fields[index_of(name)]; }

  // Returns the position of a field; throws Error, with the known names, if no field has that name.
  std::size_t index_of(std::string_view name) const {
    const auto found = std::ranges::find(names, name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    std::string known;
    for (const std::string& each : names) known += (known.empty() ? "" : ", ") + each;
    fail("batch", "no field '{}', there are: {}", name, known);
  }
};

}  // namespace lockstep::data
