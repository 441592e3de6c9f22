// Element types of tensors, plan buffers, and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "lockstep/core/bfloat16.h"

namespace lockstep {

enum class DType : std::uint8_t { F32, F64, I32, I64, U8, BF16 };

// Bytes of one element.
constexpr std::size_t size_of(DType type) {
  switch (type) {
    case DType::F64:
    case DType::I64:
      return 8;
    case DType::F32:
    case DType::I32:
      return 4;
    case DType::BF16:
      return 2;
    case DType::U8:
      return 1;
  }
  return 0;
}

// The name in messages and files: "f32", "bf16".
constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::F32:
      return "f32";
    case DType::F64:
      return "f64";
    case DType::I32:
      return "i32";
    case DType::I64:
      return "i64";
    case DType::U8:
      return "u8";
    case DType::BF16:
      return "bf16";
  }
  return "?";
}

// Whether the type is f32, f64 or bf16.
constexpr bool is_floating(DType type) { return type == DType::F32 || type == DType::F64 || type == DType::BF16; }

// The DType of a C++ type: dtype_of<float> == DType::F32. Another C++ type does not compile.
template <class T>
constexpr DType dtype_for() {
  if constexpr (std::is_same_v<T, float>) {
    return DType::F32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::F64;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return DType::I32;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return DType::I64;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DType::BF16;
  } else {
    static_assert(std::is_same_v<T, std::uint8_t>, "no DType for this element type");
    return DType::U8;
  }
}
template <class T>
inline constexpr DType dtype_of = dtype_for<T>();

}  // namespace lockstep
