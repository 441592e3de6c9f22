// Identifies a sample in a run, for random numbers.
#pragma once

#include <cstdint>
#include <string_view>

#include "lockstep/core/random.h"

namespace lockstep::data {

struct SampleKey {
  std::uint64_t seed = 0;
  std::int64_t epoch = 0, index = 0;

  // Returns the random numbers for one use of a sample; transforms with different `use` get different numbers.
  RandomStream random(std::string_view use) const {
    return {mix(mix(seed, hash_name(use)), static_cast<std::uint64_t>(epoch)), static_cast<std::uint64_t>(index)};
  }
};

}  // namespace lockstep::data
