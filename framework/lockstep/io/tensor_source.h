// Tensors that are produced one at a time, on request, for writers and readers: the source needs memory for one tensor,
// or for some of its rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/partition.h"
#include "lockstep/io/named_tensor.h"

namespace lockstep::io {

// The name, shape and type of a tensor, without its values.
struct TensorInfo {
  std::string name;
  Shape shape;
  DType dtype = DType::F32;

  std::size_t bytes() const { return static_cast<std::size_t>(shape.elements()) * size_of(dtype); }
};

// Returns a copy of rows [range) along the first axis.
inline Tensor copy_rows(const Tensor& whole, Range range) {
  Tensor part(whole.shape().tail().batched(range.size()), whole.dtype());
  const std::size_t row = range.size() > 0 ? part.bytes() / static_cast<std::size_t>(range.size()) : 0;
  std::copy_n(whole.raw() + static_cast<std::size_t>(range.begin) * row, part.bytes(), part.raw());
  return part;
}

struct TensorSource {
  std::vector<TensorInfo> infos = {};
  // Returns the tensor of infos[i], valid until the next call. Calls in any order, from one thread at a time.
  std::function<const NamedTensor&(std::size_t)> tensor = {};
  // Returns rows [range) along the first axis of infos[i], without memory for its other rows; empty: see read_rows().
  std::function<Tensor(std::size_t, Range)> rows = {};

  std::size_t count() const { return infos.size(); }
  std::size_t bytes() const {  // size of all tensors together
    std::size_t total = 0;
    for (const TensorInfo& info : infos) total += info.bytes();
    return total;
  }
  // The same by rows(), or else a copy out of the whole tensor.
  Tensor read_rows(std::size_t i, Range range) const {
    return rows ? rows(i, range) : copy_rows(tensor(i).tensor, range);
  }
};

// Returns the tensors for which keep(info) is true; what `source` refers to must outlive the result.
template <class Keep>
TensorSource select(const TensorSource& source, const Keep& keep) {
  std::vector<std::size_t> kept;
  TensorSource rest;
  for (std::size_t i = 0; i < source.infos.size(); ++i) {
    if (!keep(source.infos[i])) continue;
    kept.push_back(i);
    rest.infos.push_back(source.infos[i]);
  }
  if (source.rows) rest.rows = [kept, rows = source.rows](std::size_t i, Range range) { return rows(kept[i], range); };
  rest.tensor = [kept = std::move(kept), tensor = source.tensor](std::size_t i) -> const NamedTensor& {
    return tensor(kept[i]);
  };
  return rest;
}

// Makes a source of the caller's tensors, which must outlive the source.
inline TensorSource source_of(std::span<const NamedTensor> tensors) {
  TensorSource source{.tensor = [tensors](std::size_t i) -> const NamedTensor& { return tensors[i]; },
                      .rows = [tensors](std::size_t i, Range rows) { return copy_rows(tensors[i].tensor, rows); }};
  for (const auto& [name, tensor] : tensors) source.infos.push_back({name, tensor.shape(), tensor.dtype()});
  return source;
}

}  // namespace lockstep::io
