// Reads HDF5 that nobody vouches for, such as weights that h5py wrote, in a child process: libhdf5 1.10 crashes on some
// damaged files, and then the child does. The child has bounded memory and processor time, sees the memory that the
// caller shares with other processes as read-only, and sends what it read through a pipe. Any thread may call it, also
// in an MPI process: the child uses memory and HDF5 alone, and leaves by _exit.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "lockstep/io/image.h"

namespace lockstep::checkpoint {

// What read_image() gives and throws; also throws Error naming `file` where the child crashed or met its bounds.
Image read_image_isolated(std::span<const std::byte> image, const std::string& file);

}  // namespace lockstep::checkpoint
