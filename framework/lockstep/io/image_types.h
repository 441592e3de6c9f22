// The HDF5 types of each DType, as ids: in files (little-endian; big-endian too when reading) and in memory.
#pragma once

#include <optional>

#include "lockstep/core/dtype.h"
#include "lockstep/io/hdf5_handle.h"

namespace lockstep::io {

Hdf5Id hdf5_file_type(DType dtype);
Hdf5Id hdf5_memory_type(DType dtype);
// Returns the DType of an HDF5 type; empty for others, such as half floats, strings and h5py's booleans.
std::optional<DType> dtype_of_hdf5(Hdf5Id type);

inline constexpr const char* kChecksum = "xxh3-64";  // name of the attribute with a tensor's checksum

}  // namespace lockstep::io
