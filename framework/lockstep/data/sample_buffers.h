// Memory for one sample of a data set, into which Dataset::read() writes. One thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct SampleBuffers {
  explicit SampleBuffers(const std::vector<Field>& fields) {
    for (const Field& field : fields) out.push_back(memory.emplace_back(field.bytes()).data());
  }
  SampleBuffers(const SampleBuffers&) = delete;  // `out` of a copy would point into the original
  SampleBuffers& operator=(const SampleBuffers&) = delete;

  std::vector<std::vector<std::byte>> memory{};  // of each field
  std::vector<std::byte*> out{};                 // its place, for read()
};

}  // namespace lockstep::data
