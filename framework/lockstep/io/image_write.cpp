#include "lockstep/io/image_write.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::io {

static_assert(std::endian::native == std::endian::little, "checksums are of values as they lie in memory");

ImageStream::ImageStream(TensorSource tensors, const ImageOptions& options, std::string file)
    : tensors_(std::move(tensors)), file_(std::move(file)) {
  for (std::size_t i = 0; i < tensors_.count(); ++i) {
    const Tensor& values = tensor(i);
    checksums_.push_back(XXH3_64bits(values.raw(), values.bytes()));
  }
  layout_ = lay_out_image(tensors_.infos, checksums_, options, file_);
}

const Tensor& ImageStream::tensor(std::size_t index) const {
  const TensorInfo& info = tensors_.infos[index];
  const Tensor& tensor = tensors_.tensor(index).tensor;
  check(tensor.shape() == info.shape && tensor.dtype() == info.dtype, "checkpoint",
        "{}: tensor \"{}\" is {} of {}, expected {} of {}", file_, info.name, tensor.shape().str(),
        name_of(tensor.dtype()), info.shape.str(), name_of(info.dtype));
  check(tensor.bytes() == 0 || !tensor.empty(), "checkpoint", "{}: tensor \"{}\" of shape {} has no memory", file_,
        info.name, info.shape.str());
  return tensor;
}

void ImageStream::write(const std::function<void(std::span<const std::byte>)>& out) const {
  constexpr std::array<std::byte, 4096> kZeros{};
  out(layout_.head);
  std::uint64_t at = layout_.head.size();
  for (std::size_t i = 0; i < tensors_.count(); ++i) {
    if (tensors_.infos[i].bytes() == 0) continue;
    for (; at < layout_.offsets[i]; at += std::min<std::uint64_t>(kZeros.size(), layout_.offsets[i] - at))
      out(std::span(kZeros).first(std::min<std::uint64_t>(kZeros.size(), layout_.offsets[i] - at)));
    const Tensor& values = tensor(i);
    const std::uint64_t hash = XXH3_64bits(values.raw(), values.bytes());
    check(hash == checksums_[i], "checkpoint",
          "{}: XXH3-64 of the values of \"{}\" is {:016x}, was {:016x} a moment ago", file_, tensors_.infos[i].name,
          hash, checksums_[i]);
    out({values.raw(), values.bytes()});
    at += values.bytes();
  }
}

}  // namespace lockstep::io
