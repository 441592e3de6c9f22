#include "lockstep/core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace lockstep {

AlignedBuffer allocate_aligned(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  // The whole huge pages of large blocks are asked for as such: fewer misses of the address cache, and a fraction of
  // the page faults at the start. The rest stays on small pages, of which only those in use become resident.
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const bool large = bytes >= 2 * kHugePage;
  void* memory = nullptr;  // by posix_memalign: aligned_alloc wants sizes that are multiples of the alignment
  const int status = posix_memalign(&memory, large ? kHugePage : kAlignment, bytes);
  if (status != 0) throw Unavailable(formatted("[memory] {} bytes could not be allocated", bytes));
  // A wish: without it everything works as before.
  if (large) madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  std::memset(memory, 0, bytes);
  return AlignedBuffer(static_cast<std::byte*>(memory));
}

Tensor::Tensor(Shape shape, DType dtype) : shape_(std::move(shape)), dtype_(dtype) {
  for (std::int64_t d : shape_.dims()) check(d >= 0, "tensor", "shape {} has a negative dimension", shape_.str());
  buffer_ = allocate_aligned(bytes());
}

Tensor Tensor::over(Shape shape, DType dtype, void* memory) {
  for (std::int64_t d : shape.dims()) check(d >= 0, "tensor", "shape {} has a negative dimension", shape.str());
  Tensor tensor;
  tensor.shape_ = std::move(shape);
  tensor.dtype_ = dtype;
  check(memory != nullptr || tensor.bytes() == 0, "tensor", "no memory for shape {}, expected an address",
        tensor.shape_.str());
  if (tensor.bytes() > 0) tensor.buffer_ = AlignedBuffer(static_cast<std::byte*>(memory), FreeDeleter{true});
  return tensor;
}

std::size_t Tensor::bytes() const {
  std::size_t bytes = 0;
  check(!__builtin_mul_overflow(static_cast<std::size_t>(elements()), size_of(dtype_), &bytes), "tensor",
        "{} {} are more bytes than can be counted", shape_.str(), name_of(dtype_));
  return bytes;
}

Tensor Tensor::clone() const {
  require_memory();
  Tensor copy(shape_, dtype_);
  if (bytes() > 0) std::memcpy(copy.raw(), raw(), bytes());
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  require_memory();
  if (dtype == dtype_) return clone();
  Tensor copy(shape_, dtype);
  const auto convert = [&]<class From, class To>(From, To) {
    std::ranges::transform(data<From>(), copy.data<To>().begin(), [](From v) {
      if constexpr (std::is_same_v<From, double> && std::is_same_v<To, BFloat16>) {
        return BFloat16(static_cast<float>(v));
      } else if constexpr (std::is_same_v<From, BFloat16> && std::is_same_v<To, double>) {
        return static_cast<double>(static_cast<float>(v));
      } else {
        return static_cast<To>(v);
      }
    });
  };
  const auto from = [&]<class From>(From tag) {
    if (dtype == DType::F32) return convert(tag, float{});
    if (dtype == DType::F64) return convert(tag, double{});
    convert(tag, BFloat16{});
  };
  check(is_floating(dtype_) && is_floating(dtype), "tensor", "no conversion from {} to {}", name_of(dtype_),
        name_of(dtype));
  if (dtype_ == DType::F32) {
    from(float{});
  } else if (dtype_ == DType::F64) {
    from(double{});
  } else {
    from(BFloat16{});
  }
  return copy;
}

}  // namespace lockstep
