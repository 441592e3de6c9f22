#include "lockstep/data/npy_format.h"

#include <bit>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

std::string_view npy_type(std::string_view site, std::string_view name, DType type) {
  switch (type) {
    case DType::F32:
      return "<f4";
    case DType::F64:
      return "<f8";
    case DType::I32:
      return "<i4";
    case DType::I64:
      return "<i8";
    case DType::U8:
      return "|u1";
    default:
      fail(site, "{} is {}, expected f32, f64, i32, i64 or u8", name, name_of(type));
  }
}

}  // namespace

std::string npy_start(std::string_view site, std::string_view name, DType type, std::span<const std::int64_t> shape) {
  constexpr std::size_t kAlign = 64;
  std::string start(kNpyMagic);
  start += {'\x01', '\x00'};
  std::string header = formatted("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                 npy_type(site, name, type), joined(shape, ", "), shape.size() == 1 ? "," : "");
  const std::size_t before = start.size() + 2;  // with the header's length
  header.append(kAlign - 1 - (before + header.size()) % kAlign, ' ');
  header += '\n';
  start += static_cast<char>(header.size() & 0xFF);
  start += static_cast<char>(header.size() >> 8);
  return start + header;
}

}  // namespace lockstep::data
