// Reads HDF5 files without a hash, such as weights that h5py wrote, in a child process: libhdf5 1.10 crashes on some
// damaged files, and then only the child crashes. The child has limited memory and processor time, sees memory that the
// caller shares with other processes as read-only, and sends the tensors through a pipe. Any thread may call it, also
// in an MPI process: the child uses no MPI, and ends by _exit.
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
  std::optional<std::string> metadata;  // the string dataset "metadata", if the file has it
};

// Reads all tensors and metadata of an image. Throws what ImageReader throws, and Error with `file` if the child
// crashed or reached a limit.
Image read_image_isolated(std::span<const std::byte> image, const std::string& file);

}  // namespace lockstep::io
