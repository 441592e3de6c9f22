// Memory with a shape: the form of data, weights and results at the interfaces of the library.
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
// Rounds up to a multiple of kAlignment.
constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

struct FreeDeleter {
  bool borrowed = false;  // the caller owns the memory, see Tensor::over()
  void operator()(void* p) const {
    if (!borrowed) std::free(p);
  }
};
// Memory at a multiple of kAlignment, freed by its owner.
using AlignedBuffer = std::unique_ptr<std::byte[], FreeDeleter>;
// Allocates zero-filled memory; null for zero bytes. Throws Error where memory is short.
AlignedBuffer allocate_aligned(std::size_t bytes);

// A tensor owns its elements, but for Tensor::over(), dense in logical (row-major) order. It can be moved; only clone()
// copies it. A tensor without memory (made without a shape, or moved from) is empty(); access to its elements throws
// Error. Different threads may use different tensors; one tensor follows the rules of a std::vector.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Shape shape, DType dtype);  // zeros

  // Copies `values` into a new tensor. Throws Error unless there is one value per element.
  template <class T>
  static Tensor from(Shape shape, std::span<const T> values) {
    Tensor t(std::move(shape), dtype_of<T>);
    check(static_cast<std::int64_t>(values.size()) == t.elements(), "tensor", "{} values for shape {}", values.size(),
          t.shape().str());
    std::copy(values.begin(), values.end(), t.data<T>().begin());
    return t;
  }
  // Returns a tensor over the caller's memory, aligned for its elements, which must outlive the tensor and what it is
  // moved to: an array of a program as part of a batch, without a copy. clone() and to() return tensors that own their
  // memory.
  static Tensor over(Shape shape, DType dtype, void* memory);
  Tensor clone() const;
  Tensor to(DType dtype) const;  // a converted copy; throws Error unless both types are floating

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const;  // throws Error where the number exceeds std::size_t
  bool empty() const { return buffer_ == nullptr; }

  // The elements; throws Error if T is not their type.
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
    check(wanted == dtype_, "tensor", "elements are {}, but {} was requested", name_of(dtype_), name_of(wanted));
  }
  void require_memory() const {
    check(buffer_ != nullptr || elements() == 0, "tensor",
          "this tensor has no elements: it was made without a shape, or moved from");
  }
  Shape shape_;
  DType dtype_ = DType::F32;
  AlignedBuffer buffer_;
};

}  // namespace lockstep
