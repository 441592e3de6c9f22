// The contents of an open HDF5 file: names of its datasets and groups, for messages and for files with one group per
// sample. For use inside an Hdf5Session.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/io/hdf5_handle.h"

namespace lockstep::io {

// The DType as which elements of this HDF5 type are read (see Hdf5Info); empty: the type is no number.
std::optional<DType> hdf5_read_type(Hdf5Id type);
// Whether every link of the path leads somewhere.
bool hdf5_has(Hdf5Id file, const std::string& path);
// The first datasets, with shape and type, as text: "density (100, 64) f32, p (100) f64 and more".
std::string hdf5_listing(Hdf5Id file);
// The names of the groups in `group`, sorted. Throws Error at site "hdf5" if it is not a group.
std::vector<std::string> hdf5_groups(Hdf5Id file, const std::string& path, const std::string& group);

}  // namespace lockstep::io
