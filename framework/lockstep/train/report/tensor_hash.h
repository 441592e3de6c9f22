// A tensor of the training state by its fingerprint.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

struct TensorHash {
  std::string name;        // as in a checkpoint
  std::uint64_t hash = 0;  // XXH3-64 of its values in logical order, so independent of ranks and layouts
  bool operator==(const TensorHash&) const = default;
};

}  // namespace lockstep::train
