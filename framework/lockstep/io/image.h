// Reads named tensors from an HDF5 file in memory, each with a checksum where the file has one (see image_write.h).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::checkpoint {

struct Image {
  std::vector<NamedTensor> tensors;     // sorted by name
  std::optional<std::string> metadata;  // of a file that has the string dataset "metadata"
};

// Reads every dataset, of either endianness and any layout inside the file. Throws Error for what is not a tensor of a
// DType, for sizes that the image cannot hold, and for values that their checksum, if they have one, denies. HDF5
// itself parses the image: check a hash first where there is one.
Image read_image(std::span<const std::byte> image, const std::string& file);

}  // namespace lockstep::checkpoint
