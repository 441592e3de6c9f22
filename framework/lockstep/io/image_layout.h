// The layout of an HDF5 file of tensors that are written by other code than HDF5's: HDF5's core driver lays the file
// out in memory, without values. Names, shapes and checksums come first in the file, and the values of each tensor
// follow at the offset that HDF5 gave it: little-endian, contiguous, in logical order. So a full disk or a bad block is
// an error of our own code (atomic_file.h), which can undo the write, and never of HDF5's caches.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Offsets and sizes are in bytes and count from the end of the user block.
struct ImageLayout {
  std::vector<std::byte> head{};         // the bytes before the first tensor's values
  std::vector<std::uint64_t> offsets{};  // of each tensor's values, rising; undefined for a tensor without values
  std::uint64_t bytes = 0;               // of the whole file: the last tensor's values end there
};

// Lays out a file of these tensors. `checksums`: one per tensor (attribute "xxh3-64" of its dataset), or none. `file`
// names the file in messages. Throws Error with the tensor's name if HDF5 cannot store that name, or if it is given
// twice.
ImageLayout lay_out_image(std::span<const TensorInfo> infos, std::span<const std::uint64_t> checksums,
                          const ImageOptions& options, const std::string& file);

}  // namespace lockstep::io
