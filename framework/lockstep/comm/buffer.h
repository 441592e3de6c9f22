// What messages carry: typed views of contiguous memory, made from any vector, array or span of the element types
// below. A view owns nothing: the memory outlives the call, and for isend/irecv the request.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <ranges>
#include <string_view>
#include <type_traits>
#include <utility>

namespace lockstep::comm {

// Types on the wire. Byte is opaque: it is copied and never summed.
enum class Element : std::uint8_t { Byte, U8, I32, I64, U64, F32, F64 };

constexpr std::int64_t size_of(Element element) {
  switch (element) {
    case Element::Byte:
    case Element::U8:
      return 1;
    case Element::I32:
    case Element::F32:
      return 4;
    case Element::I64:
    case Element::U64:
    case Element::F64:
      return 8;
  }
  return 1;
}

std::string_view name_of(Element element);

template <class T>
concept Transferable = std::same_as<T, std::byte> || std::same_as<T, std::uint8_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::int64_t> || std::same_as<T, std::uint64_t> || std::same_as<T, float> ||
    std::same_as<T, double>;

template <Transferable T>
constexpr Element element_of() {
  if constexpr (std::same_as<T, std::byte>) {
    return Element::Byte;
  } else if constexpr (std::same_as<T, std::uint8_t>) {
    return Element::U8;
  } else if constexpr (std::same_as<T, std::int32_t>) {
    return Element::I32;
  } else if constexpr (std::same_as<T, std::int64_t>) {
    return Element::I64;
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    return Element::U64;
  } else if constexpr (std::same_as<T, float>) {
    return Element::F32;
  } else {
    return Element::F64;
  }
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

// Memory to write to; a temporary vector is refused at compile time, a temporary span is fine.
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
