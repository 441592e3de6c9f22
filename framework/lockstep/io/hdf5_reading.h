// What the readers of HDF5 files share: handles at their site, and the refusal of numbers that do not fit. Internal.
#pragma once

#include <hdf5.h>

#include <string>
#include <string_view>

#include "lockstep/io/hdf5_handle.h"

namespace lockstep::io {

inline constexpr std::string_view kHdf5 = "hdf5";

inline Hdf5Handle owned(Hdf5Id id, Hdf5Handle::Close closer, const std::string& file, std::string_view operation) {
  return {id, closer, file, operation, kHdf5};
}

// For H5Pset_type_conv_cb: ends a read at a number outside the range of the type in memory; `seen` is a bool that says
// so.
inline H5T_conv_ret_t refuse_range(H5T_conv_except_t what, hid_t, hid_t, void*, void*, void* seen) {
  if (what != H5T_CONV_EXCEPT_RANGE_HI && what != H5T_CONV_EXCEPT_RANGE_LOW) return H5T_CONV_UNHANDLED;
  *static_cast<bool*>(seen) = true;
  return H5T_CONV_ABORT;
}

}  // namespace lockstep::io
