#include "lockstep/io/hdf5_lists.h"

#include <hdf5.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/io/hdf5_reading.h"

namespace lockstep::io {
namespace {

// A list that HDF5 has allocated.
struct List {
  Hdf5Id type, space;
  hvl_t value{};
  ~List() {
    if (value.p == nullptr) return;
#if H5_VERSION_GE(1, 12, 0)
    H5Treclaim(type, space, H5P_DEFAULT, &value);
#else  // its older name, which newer libraries may lack
    H5Dvlen_reclaim(type, space, H5P_DEFAULT, &value);
#endif
  }
};

}  // namespace

bool is_hdf5_list(Hdf5Id type) {
  if (H5Tget_class(type) != H5T_VLEN) return false;
  const Hdf5Id base = H5Tget_super(type);
  if (base < 0) return false;
  const bool is_integer = H5Tget_class(base) == H5T_INTEGER;
  H5Tclose(base);
  return is_integer;
}

std::int64_t read_hdf5_list(Hdf5Id set, const std::string& file, const std::string& dataset, std::int64_t index,
                            std::span<std::int64_t> out) {
  const Hdf5Handle type = owned(H5Tvlen_create(H5T_NATIVE_INT64), H5Tclose, file, dataset);
  const Hdf5Handle from = owned(H5Dget_space(set), H5Sclose, file, dataset);
  const hsize_t start = static_cast<hsize_t>(index), one = 1;
  check_hdf5(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, &start, nullptr, &one, nullptr), file, dataset, kHdf5);
  const Hdf5Handle to = owned(H5Screate_simple(1, &one, nullptr), H5Sclose, file, dataset);
  bool out_of_range = false;
  const Hdf5Handle transfer = owned(H5Pcreate(H5P_DATASET_XFER), H5Pclose, file, "H5Pcreate");
  check_hdf5(H5Pset_type_conv_cb(transfer.get(), refuse_range, &out_of_range), file, "H5Pset_type_conv_cb", kHdf5);
  List list{.type = type.get(), .space = to.get()};
  const herr_t code = H5Dread(set, type.get(), to.get(), from.get(), transfer.get(), &list.value);
  if (code < 0) list.value = {};  // bytes that are no address, which HDF5 1.14 leaves after a failed read
  if (out_of_range) {
    H5Eclear2(H5E_DEFAULT);
    fail(kHdf5, "{}: list {} of '{}' has a number that i64 cannot hold", file, index, dataset);
  }
  if (code < 0) check_hdf5(code, file, formatted("'{}', list {}", dataset, index), kHdf5);
  if (list.value.len <= out.size() && list.value.len > 0)
    std::copy_n(static_cast<const std::int64_t*>(list.value.p), list.value.len, out.begin());
  return static_cast<std::int64_t>(list.value.len);
}

}  // namespace lockstep::io
