// Reads HDF5 that nobody vouches for, such as weights that h5py wrote, in a child process: libhdf5 1.10 crashes on some
// damaged files, and then the child does. The child has bounded memory and processor time, sees the memory that the
// caller shares with other processes as read-only, and sends what it read through a pipe. Any thread may call it, also
// in an MPI process: the child uses memory and HDF5 alone, and leaves by _exit.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"

namespace lockstep::io {

struct Image {
  std::vector<NamedTensor> tensors;     // sorted by name
  std::optional<std::string> metadata;  // of a file that has the string dataset "metadata"
};

// All that an ImageReader gives, and throws what it throws; also throws Error naming `file` where the child crashed or
// met its bounds.
Image read_image_isolated(std::span<const std::byte> image, const std::string& file);

}  // namespace lockstep::io
