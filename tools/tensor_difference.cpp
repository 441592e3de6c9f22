#include "tools/tensor_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>

namespace lockstep::tools {
namespace {

// Bit patterns in the order of the numbers they stand for, so that neighbours are one apart and both zeros are 0.
template <class Bits>
std::int64_t rank_of(Bits bits) {
  using Signed = std::make_signed_t<Bits>;
  const auto value = static_cast<Signed>(bits);
  return value >= 0 ? std::int64_t{value} : -std::int64_t{static_cast<Signed>(bits & static_cast<Bits>(~Bits{0}) >> 1)};
}

std::uint64_t distance(std::int64_t a, std::int64_t b) {
  return a > b ? static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b)
               : static_cast<std::uint64_t>(b) - static_cast<std::uint64_t>(a);
}

std::optional<std::uint64_t> steps_between(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return distance(rank_of(std::bit_cast<std::uint32_t>(a)), rank_of(std::bit_cast<std::uint32_t>(b)));
}
std::optional<std::uint64_t> steps_between(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nullopt;
  return distance(rank_of(std::bit_cast<std::uint64_t>(a)), rank_of(std::bit_cast<std::uint64_t>(b)));
}
std::optional<std::uint64_t> steps_between(std::int64_t a, std::int64_t b) { return distance(a, b); }

std::vector<std::int64_t> index_of(std::int64_t position, const Shape& shape) {
  std::vector<std::int64_t> index(shape.dims().size());
  for (std::size_t d = index.size(); d-- > 0;) {
    index[d] = position % shape.dims()[d];
    position /= shape.dims()[d];
  }
  return index;
}

template <class T>
void compare_elements(const Tensor& left, const Tensor& right, TensorDifference& found) {
  using Wide = std::conditional_t<std::is_floating_point_v<T>, T, std::int64_t>;
  const std::span<const T> a = left.data<T>(), b = right.data<T>();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) == 0) continue;  // NOLINT: bits are compared, of NaN and zeros too
    if (found.elements++ == 0) {
      found.first = {.index = index_of(static_cast<std::int64_t>(i), left.shape()),
                     .left = fmt::format("{}", a[i]),
                     .right = fmt::format("{}", b[i]),
                     .steps = steps_between(Wide{a[i]}, Wide{b[i]})};
    }
    const double apart = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (apart > found.largest) found.largest = apart;
  }
}

void compare_elements(const Tensor& left, const Tensor& right, TensorDifference& found) {
  switch (left.dtype()) {
    case DType::F32:
      return compare_elements<float>(left, right, found);
    case DType::F64:
      return compare_elements<double>(left, right, found);
    case DType::I32:
      return compare_elements<std::int32_t>(left, right, found);
    case DType::I64:
      return compare_elements<std::int64_t>(left, right, found);
    case DType::U8:
      return compare_elements<std::uint8_t>(left, right, found);
    case DType::BF16:
      break;  // no checkpoint holds it
  }
  found.what = "of a type that cannot be compared";
}

std::string form(const Tensor& tensor) { return fmt::format("{} {}", name_of(tensor.dtype()), tensor.shape().str()); }

}  // namespace

std::vector<TensorDifference> tensor_differences(const std::vector<io::NamedTensor>& left,
                                                 const std::vector<io::NamedTensor>& right) {
  std::map<std::string, const Tensor*> others;
  for (const auto& [name, tensor] : right) others[name] = &tensor;
  std::vector<TensorDifference> differences;
  for (const auto& [name, mine] : left) {
    const auto other = others.find(name);
    if (other == others.end()) {
      differences.push_back({.name = name, .what = "only in the first"});
      continue;
    }
    const Tensor& theirs = *other->second;
    others.erase(other);
    if (form(mine) != form(theirs)) {
      differences.push_back({.name = name, .what = fmt::format("{} and {}", form(mine), form(theirs))});
    } else if (mine.bytes() > 0 && std::memcmp(mine.raw(), theirs.raw(), mine.bytes()) != 0) {
      TensorDifference found{.name = name, .of = mine.elements()};
      compare_elements(mine, theirs, found);
      differences.push_back(std::move(found));
    }
  }
  for (const auto& [name, tensor] : others) differences.push_back({.name = name, .what = "only in the second"});
  return differences;
}

}  // namespace lockstep::tools
