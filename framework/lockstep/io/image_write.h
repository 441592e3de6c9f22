// Writes named tensors as an HDF5 file, tensor by tensor, each with a checksum (attribute "xxh3-64" of its dataset:
// XXH3-64 of its values, little-endian). HDF5 lays the file out in memory, without values: names, shapes and checksums
// come first, and values follow, each at the offset that HDF5 gave it. The core driver keeps HDF5 away from the disk,
// so a full disk or a bad block is met by code that can undo (atomic_file.h), never in the middle of HDF5's caches.
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
  std::size_t user_block = 0;                // bytes in front of the HDF5 data: 0, 512, 1024, 2048, ...
  std::optional<std::string> metadata = {};  // stored as the string dataset "metadata" when given
};

// Holds the file without the tensors' values. One thread at a time.
class ImageStream {
 public:
  // Asks for each tensor once, to compute its checksum. `file` is for messages. Throws Error that names the tensor for
  // a name HDF5 cannot hold, a name given twice, or a tensor without memory.
  ImageStream(TensorSource tensors, const ImageOptions& options, std::string file);

  std::uint64_t bytes() const { return bytes_; }  // behind the user block
  // Hands `out` all bytes behind the user block, in order; asks for each tensor once more. Little-endian, contiguous,
  // in logical order, without time stamps: the same tensors give the same bytes. Throws Error for a tensor whose values
  // are others than the first time.
  void write(const std::function<void(std::span<const std::byte>)>& out) const;

 private:
  bool lay_out(const ImageOptions& options, std::size_t metadata_block);
  const Tensor& tensor(std::size_t index) const;

  TensorSource tensors_;
  std::string file_;
  std::vector<std::uint64_t> checksums_;  // by tensor
  std::vector<std::uint64_t> offsets_;    // by tensor, from the end of the user block; of one without values: unused
  std::vector<std::byte> head_;           // up to the first tensor's values
  std::uint64_t bytes_ = 0;
};

}  // namespace lockstep::io
