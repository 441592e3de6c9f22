#include "lockstep/core/tensor.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

AlignedBuffer allocate_aligned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  auto* memory = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  check(memory != nullptr, "memory", "{} bytes could not be allocated", rounded);
  std::memset(memory, 0, rounded);
  return AlignedBuffer(memory);
}

Tensor::Tensor(Shape shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {
  for (std::int64_t d : shape_.dims()) check(d >= 0, "tensor", "shape {} has a negative dimension", shape_.str());
  buffer_ = allocate_aligned(bytes());
}

Tensor Tensor::clone() const {
  Tensor copy(shape_, dtype_);
  if (bytes() > 0) std::memcpy(copy.raw(), raw(), bytes());
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == dtype_) return clone();
  Tensor copy(shape_, dtype);
  if (dtype_ == DType::F32 && dtype == DType::F64) {
    std::ranges::copy(data<float>(), copy.data<double>().begin());
  } else if (dtype_ == DType::F64 && dtype == DType::F32) {
    std::ranges::transform(data<double>(), copy.data<float>().begin(), [](double v) { return static_cast<float>(v); });
  } else {
    fail("tensor", "no conversion from {} to {}", name_of(dtype_), name_of(dtype));
  }
  return copy;
}

}  // namespace lockstep
