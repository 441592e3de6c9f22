// Tensors handed out one after the other, for writers: whoever makes each when it is asked for needs memory for one.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "lockstep/io/named_tensor.h"

namespace lockstep::checkpoint {

struct TensorSource {
  std::size_t count = 0, bytes = 0;                            // of all together
  std::function<const NamedTensor&(std::size_t)> tensor = {};  // valid until the next call; one thread at a time
};

// What it hands out is the caller's.
inline TensorSource source_of(std::span<const NamedTensor> tensors) {
  std::size_t bytes = 0;
  for (const NamedTensor& entry : tensors) bytes += entry.tensor.bytes();
  return {.count = tensors.size(), .bytes = bytes, .tensor = [tensors](std::size_t i) -> const NamedTensor& {
            return tensors[i];
          }};
}

}  // namespace lockstep::checkpoint
