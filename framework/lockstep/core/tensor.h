// Memory with a shape: the form in which data, weights and results pass in and out of the library.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

#include "lockstep/core/dtype.h"
#include "lockstep/core/error.h"
#include "lockstep/core/shape.h"

namespace lockstep {

inline constexpr std::size_t kAlignment = 64;  // bytes: a cache line, and the widest vector
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct FreeDeleter {
  void operator()(void* p) const { std::free(p); }
};
// Zero-filled memory at a multiple of kAlignment; null for zero bytes. Throws Error where memory is short.
using AlignedBuffer = std::unique_ptr<std::byte[], FreeDeleter>;
AlignedBuffer allocate_aligned(std::size_t bytes);

// Owns its elements, dense in logical (row-major) order. Movable; copied only by clone(). A tensor without memory (made
// without a shape, or moved from) is empty(); access to its elements throws Error.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Shape shape, DType dtype);  // zeros

  template <class T>
  static Tensor from(Shape shape, std::span<const T> values) {
    Tensor t(std::move(shape), dtype_of<T>);
    check(static_cast<std::int64_t>(values.size()) == t.elements(), "tensor", "{} values for shape {}", values.size(),
          t.shape().str());
    std::copy(values.begin(), values.end(), t.data<T>().begin());
    return t;
  }
  Tensor clone() const;
  Tensor to(DType dtype) const;  // a copy, converted (between floating types)

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const;  // throws Error where the number exceeds std::size_t
  bool empty() const { return buffer_ == nullptr; }

  template <class T>
  std::span<T> data() {
    require(dtype_of<T>);
    return {reinterpret_cast<T*>(buffer_.get()), static_cast<std::size_t>(elements())};
  }
  template <class T>
  std::span<const T> data() const {
    require(dtype_of<T>);
    return {reinterpret_cast<const T*>(buffer_.get()), static_cast<std::size_t>(elements())};
  }
  std::byte* raw() { return buffer_.get(); }
  const std::byte* raw() const { return buffer_.get(); }

 private:
  void require(DType wanted) const {
    require_memory();
    check(wanted == dtype_, "tensor", "elements are {}, asked for {}", name_of(dtype_), name_of(wanted));
  }
  void require_memory() const {  // a tensor that was made without a shape, or moved from, has none
    check(buffer_ != nullptr || elements() == 0, "tensor",
          "this tensor has no elements: it was made without a shape, or moved from");
  }
  Shape shape_;
  DType dtype_ = DType::F32;
  AlignedBuffer buffer_;
};

}  // namespace lockstep
