// The hash of a tensor of the training state.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

struct TensorHash {
  std::string name;        // the tensor's name in a checkpoint
  std::uint64_t hash = 0;  // XXH3-64 of its values in logical order, which does not depend on ranks and layouts
  bool operator==(const TensorHash&) const = default;
};

}  // namespace lockstep::train
