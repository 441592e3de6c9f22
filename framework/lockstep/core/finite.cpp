#include "lockstep/core/finite.h"

#include <algorithm>
#include <cmath>

namespace lockstep {
namespace {

template <class T>
std::int64_t find(const void* data, std::int64_t n) {
  const auto* begin = static_cast<const T*>(data);
  const auto* found = std::find_if(begin, begin + n, [](T v) {
    if constexpr (std::is_same_v<T, BFloat16>) {
      return !std::isfinite(static_cast<float>(v));
    } else {
      return !std::isfinite(v);
    }
  });
  return found == begin + n ? -1 : found - begin;
}

}  // namespace

std::int64_t first_nonfinite(const void* data, DType dtype, std::int64_t n) {
  if (data == nullptr || !is_floating(dtype)) return -1;
  if (dtype == DType::F64) return find<double>(data, n);
  return dtype == DType::BF16 ? find<BFloat16>(data, n) : find<float>(data, n);
}

}  // namespace lockstep
