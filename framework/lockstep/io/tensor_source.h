// Tensors that are produced one at a time, on request, for writers and readers: the source needs memory for one tensor.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::io {

// The name, shape and type of a tensor, without its values.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::F32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

struct TensorSource {
  std::vector<TensorInfo> infos = {};
  // Returns the tensor of infos[i], valid until the next call. Calls in any order, from one thread at a time.
  std::function<const NamedTensor&(std::size_t)> tensor = {};

  std::size_t count() const { return infos.size(); }
  std::size_t bytes() const {  // size of all tensors together
    std::size_t total = 0;
    for (const TensorInfo& info : infos) total += info.bytes();
    return total;
  }
};

// Makes a source of the caller's tensors, which must outlive the source.
inline TensorSource source_of(std::span<const NamedTensor> tensors) {
  TensorSource source{.tensor = [tensors](std::size_t i) -> const NamedTensor& { return tensors[i]; }};
  for (const auto& [name, tensor] : tensors) source.infos.push_back({name, tensor.shape(), tensor.dtype()});
  return source;
}

}  // namespace lockstep::io
