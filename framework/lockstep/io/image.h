// Named tensors as an HDF5 file in memory, and back, each with a checksum (attribute "xxh3-64" of its dataset: XXH3-64
// of its values, little-endian). The core driver keeps HDF5 away from the disk, so a full disk or a bad block is met by
// code that can undo (atomic_file.h), never in the middle of HDF5's caches.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::checkpoint {

struct ImageOptions {
  std::size_t user_block = 0;             // bytes left zero in front of the HDF5 data: 0, 512, 1024, 2048, ...
  const std::string* metadata = nullptr;  // stored as the string dataset "metadata" when given
};

struct Image {
  std::vector<NamedTensor> tensors;     // sorted by name
  std::optional<std::string> metadata;  // of a file that has the string dataset "metadata"
};

// Little-endian, contiguous, in logical order, without time stamps: the same tensors give the same bytes. `file` is for
// messages. Throws Error that names the tensor for a name HDF5 cannot hold, a name given twice, or a tensor without
// memory.
std::vector<std::byte> write_image(const TensorSource& tensors, const ImageOptions& options, const std::string& file);

// Reads every dataset, of either endianness and any layout inside the file. Throws Error for what is not a tensor of a
// DType, for sizes that the image cannot hold, and for values that their checksum, if they have one, denies. HDF5
// itself parses the image: check a hash first where there is one.
Image read_image(std::span<const std::byte> image, const std::string& file);

}  // namespace lockstep::checkpoint
