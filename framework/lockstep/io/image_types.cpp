#include "lockstep/io/image_types.h"

#include <hdf5.h>

namespace lockstep::io {
namespace {

constexpr DType kAll[] = {DType::F32, DType::F64, DType::I32, DType::I64, DType::U8};

Hdf5Id big_endian_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return H5T_IEEE_F32BE;
    case DType::F64:
      return H5T_IEEE_F64BE;
    case DType::I32:
      return H5T_STD_I32BE;
    case DType::I64:
      return H5T_STD_I64BE;
    case DType::U8:
      return H5T_STD_U8BE;
    case DType::BF16:
      break;  // never stored: checkpoints hold the f32 master
  }
  return -1;
}

}  // namespace

Hdf5Id hdf5_file_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return H5T_IEEE_F32LE;
    case DType::F64:
      return H5T_IEEE_F64LE;
    case DType::I32:
      return H5T_STD_I32LE;
    case DType::I64:
      return H5T_STD_I64LE;
    case DType::U8:
      return H5T_STD_U8LE;
    case DType::BF16:
      break;
  }
  return -1;
}

Hdf5Id hdf5_memory_type(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return H5T_NATIVE_FLOAT;
    case DType::F64:
      return H5T_NATIVE_DOUBLE;
    case DType::I32:
      return H5T_NATIVE_INT32;
    case DType::I64:
      return H5T_NATIVE_INT64;
    case DType::U8:
      return H5T_NATIVE_UINT8;
    case DType::BF16:
      break;
  }
  return -1;
}

std::optional<DType> dtype_of_hdf5(Hdf5Id type) {
  for (DType dtype : kAll) {
    if (H5Tequal(type, hdf5_file_type(dtype)) > 0 || H5Tequal(type, big_endian_type(dtype)) > 0) return dtype;
  }
  return std::nullopt;
}

}  // namespace lockstep::io
