// Tensors handed out one after the other, for writers and readers: a source that makes each tensor when it is asked for
// needs memory for one.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::io {

// What is known of a tensor without its values.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::F32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

struct TensorSource {
  std::vector<TensorInfo> infos = {};
  // The tensor that infos[i] describes; valid until the next call. In any order, one thread at a time.
  std::function<const NamedTensor&(std::size_t)> tensor = {};

  std::size_t count() const { return infos.size(); }
  std::size_t bytes() const {  // of all tensors together
    std::size_t total = 0;
    for (const TensorInfo& info : infos) total += info.bytes();
    return total;
  }
};

// The caller's tensors, which outlive the source.
inline TensorSource source_of(std::span<const NamedTensor> tensors) {
  TensorSource source{.tensor = [tensors](std::size_t i) -> const NamedTensor& { return tensors[i]; }};
  for (const auto& [name, tensor] : tensors) source.infos.push_back({name, tensor.shape(), tensor.dtype()});
  return source;
}

}  // namespace lockstep::io
