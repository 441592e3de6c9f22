// Typed views of contiguous memory, for messages: made from any vector, array or span of the element types below. A
// view owns no memory: the memory must outlive the call, and for isend() and irecv() the request.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/float16.h"

namespace lockstep::comm {

// Types of elements in messages. Byte is opaque: it is copied and never summed.
enum class Element : std::uint8_t { Byte, U8, I8, U16, I16, F16, BF16, U32, I32, F32, U64, I64, F64 };

constexpr std::int64_t size_of(Element element) {
  if (element >= Element::U64) return 8;
  if (element >= Element::U32) return 4;
  return element >= Element::U16 ? 2 : 1;
}

std::string_view name_of(Element element);

namespace detail {
template <class T>
constexpr std::optional<Element> find_element() {
  using std::is_same_v;
  if (is_same_v<T, std::byte>) return Element::Byte;
  if (is_same_v<T, std::uint8_t>) return Element::U8;
  if (is_same_v<T, std::int8_t>) return Element::I8;
  if (is_same_v<T, std::uint16_t>) return Element::U16;
  if (is_same_v<T, std::int16_t>) return Element::I16;
  if (is_same_v<T, Float16>) return Element::F16;
  if (is_same_v<T, BFloat16>) return Element::BF16;
  if (is_same_v<T, std::uint32_t>) return Element::U32;
  if (is_same_v<T, std::int32_t>) return Element::I32;
  if (is_same_v<T, float>) return Element::F32;
  if (is_same_v<T, std::uint64_t>) return Element::U64;
  if (is_same_v<T, std::int64_t>) return Element::I64;
  if (is_same_v<T, double>) return Element::F64;
  return std::nullopt;
}
}  // namespace detail

template <class T>
concept Transferable = detail::find_element<T>()
.has_value();

template <Transferable T>
constexpr Element element_of() {
  return *detail::find_element<T>();
}

template <class R>
concept TransferableRange =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> && Transferable<std::ranges::range_value_t<R>>;

// Memory to read from.
struct ConstBuffer {
  const void* data = nullptr;
  std::int64_t count = 0;
  Element element = Element::Byte;

  ConstBuffer(const void* memory, std::int64_t elements, Element type) : data(memory), count(elements), element(type) {}
  template <TransferableRange R>
  ConstBuffer(const R& range)
      : data(std::ranges::data(range)),
        count(static_cast<std::int64_t>(std::ranges::size(range))),
        element(element_of<std::ranges::range_value_t<R>>()) {}

  std::int64_t bytes() const { return count * size_of(element); }
  ConstBuffer part(std::int64_t begin, std::int64_t elements) const {
    return {static_cast<const std::byte*>(data) + begin * size_of(element), elements, element};
  }
};

// Memory to write to; a temporary vector does not compile, a temporary span is allowed.
struct Buffer {
  void* data = nullptr;
  std::int64_t count = 0;
  Element element = Element::Byte;

  Buffer(void* memory, std::int64_t elements, Element type) : data(memory), count(elements), element(type) {}
  template <TransferableRange R>
  requires std::ranges::borrowed_range<R> &&
      (!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>)
          Buffer(R&& range)  // NOLINT: a Buffer is no range
      : data(std::ranges::data(range)),
        count(static_cast<std::int64_t>(std::ranges::size(range))),
        element(element_of<std::ranges::range_value_t<R>>()) {}

  operator ConstBuffer() const { return {data, count, element}; }
  std::int64_t bytes() const { return count * size_of(element); }
  Buffer part(std::int64_t begin, std::int64_t elements) const {
    return {static_cast<std::byte*>(data) + begin * size_of(element), elements, element};
  }
};

}  // namespace lockstep::comm
