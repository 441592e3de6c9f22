#include "lockstep/data/convert_array.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

template <class From, class To>
bool converted(From value, To& out) {
  if constexpr (std::is_same_v<From, To>) {
    out = value;
    return true;
  } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
    constexpr double kMostFloat = 0x1.ffffffp127;  // numbers from here on round to infinity
    if (std::isfinite(value) && std::abs(value) >= kMostFloat) return false;
    out = static_cast<float>(value);
    return true;
  } else if constexpr (std::is_floating_point_v<To>) {
    out = static_cast<To>(value);
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    // Both limits are powers of two (or 0), which From holds exactly.
    constexpr auto kLeast = static_cast<From>(std::numeric_limits<To>::min());
    constexpr auto kEnd =
        static_cast<From>(std::numeric_limits<To>::max() / 2 + 1) * 2;  // NOLINT(bugprone-integer-division)
    if (!(value >= kLeast && value < kEnd) || std::trunc(value) != value) return false;
    out = static_cast<To>(value);
    return true;
  } else {
    const auto wide = static_cast<std::int64_t>(value);
    if (wide < static_cast<std::int64_t>(std::numeric_limits<To>::min()) ||
        wide > static_cast<std::int64_t>(std::numeric_limits<To>::max()))
      return false;
    out = static_cast<To>(value);
    return true;
  }
}

template <class From, class To>
std::int64_t convert_all(const std::byte* in, std::byte* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    From value;
    To result{};
    std::memcpy(&value, in + static_cast<std::size_t>(i) * sizeof value, sizeof value);
    if (!converted(value, result)) return i;
    std::memcpy(out + static_cast<std::size_t>(i) * sizeof result, &result, sizeof result);
  }
  return -1;
}

template <class From>
std::int64_t convert_from(const std::byte* in, DType to, std::byte* out, std::int64_t count) {
  switch (to) {
    case DType::F32:
      return convert_all<From, float>(in, out, count);
    case DType::F64:
      return convert_all<From, double>(in, out, count);
    case DType::I32:
      return convert_all<From, std::int32_t>(in, out, count);
    case DType::I64:
      return convert_all<From, std::int64_t>(in, out, count);
    case DType::U8:
      return convert_all<From, std::uint8_t>(in, out, count);
    case DType::BF16:
      break;
  }
  fail("conversion", "fields of a file cannot be {}, expected f32, f64, i32, i64 or u8", name_of(to));
}

}  // namespace

std::int64_t convert_array(DType from, const std::byte* in, DType to, std::byte* out, std::int64_t count) {
  if (from == to) {
    if (count > 0) std::memcpy(out, in, static_cast<std::size_t>(count) * size_of(from));
    return -1;
  }
  switch (from) {
    case DType::F32:
      return convert_from<float>(in, to, out, count);
    case DType::F64:
      return convert_from<double>(in, to, out, count);
    case DType::I32:
      return convert_from<std::int32_t>(in, to, out, count);
    case DType::I64:
      return convert_from<std::int64_t>(in, to, out, count);
    case DType::U8:
      return convert_from<std::uint8_t>(in, to, out, count);
    case DType::BF16:
      break;
  }
  fail("conversion", "elements of a file cannot be {}, expected f32, f64, i32, i64 or u8", name_of(from));
}

}  // namespace lockstep::data
