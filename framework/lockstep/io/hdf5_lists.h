// Datasets whose elements are lists of integers (HDF5's variable-length types), one list at a time. For use inside an
// Hdf5Session. Functions throw Error at site "hdf5".
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "lockstep/io/hdf5_handle.h"

namespace lockstep::io {

// Whether elements of this HDF5 type are lists of integers.
bool is_hdf5_list(Hdf5Id type);
// Returns the length of list `index` of a dataset of one axis, and writes its integers if `out` has room for them.
// Throws Error for an unsigned number above 2^63 - 1.
std::int64_t read_hdf5_list(Hdf5Id set, const std::string& file, const std::string& dataset, std::int64_t index,
                            std::span<std::int64_t> out);

}  // namespace lockstep::io
