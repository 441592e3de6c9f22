// Writes named tensors to an HDF5 file, one by one, each with a checksum (attribute "xxh3-64" of its dataset: XXH3-64
// of its values, little-endian). HDF5 lays the file out in memory, without values: names, shapes and checksums come
// first, and the values of each tensor follow at the offset that HDF5 gave it. HDF5's core driver writes no file, so a
// full disk or a bad block is an error of our own code (atomic_file.h), which can undo the write, and never of HDF5's
// caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/tensor_source.h"

namespace lockstep::io {

struct ImageOptions {
  std::size_t user_block = 0;                // bytes before the HDF5 data: 0, 512, 1024, 2048, ...
  std::optional<std::string> metadata = {};  // stored as the string dataset "metadata" when given
};

// Holds the file without the tensors' values. One thread at a time.
class ImageStream {
 public:
  // Requests each tensor once, to compute its checksum. `file` names the file in messages. Throws Error with the
  // tensor's name if HDF5 cannot store that name, if it is given twice, or if the tensor has no memory.
  ImageStream(TensorSource tensors, const ImageOptions& options, std::string file);

  std::uint64_t bytes() const { return bytes_; }  // size of the HDF5 data, without the user block
  // Passes all bytes after the user block to `out`, in order; requests each tensor once more. Values are little-endian,
  // contiguous and in logical order, without time stamps, so equal tensors give equal bytes. Throws Error if a tensor's
  // values have changed since the constructor.
  void write(const std::function<void(std::span<const std::byte>)>& out) const;

 private:
  bool lay_out(const ImageOptions& options, std::size_t metadata_block);
  const Tensor& tensor(std::size_t index) const;

  TensorSource tensors_;
  std::string file_;
  std::vector<std::uint64_t> checksums_;  // by tensor
  std::vector<std::uint64_t> offsets_;    // by tensor, from the end of the user block; unused if it has no values
  std::vector<std::byte> head_;           // the bytes before the first tensor's values
  std::uint64_t bytes_ = 0;
};

}  // namespace lockstep::io
