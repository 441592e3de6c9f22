// Reads named tensors from an HDF5 file in memory, tensor by tensor, each with a checksum where the file has one (see
// image_write.h). The core driver lends the caller's bytes, without a copy.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::io {

// An open file. One thread at a time.
class ImageReader {
 public:
  // Lists every dataset, of either endianness and any layout inside the file. `image` outlives this; `file` is for
  // messages. Throws Error for what is not a tensor of a DType, and for sizes that the image cannot hold. HDF5 itself
  // parses the image: check a hash first where there is one.
  ImageReader(std::span<const std::byte> image, std::string file);
  ImageReader(const ImageReader&) = delete;
  ImageReader& operator=(const ImageReader&) = delete;
  ~ImageReader();

  const std::vector<TensorInfo>& tensors() const { return tensors_; }       // sorted by name
  const std::optional<std::string>& metadata() const { return metadata_; }  // the string dataset "metadata"
  // The values of tensors()[index]; throws Error for values that their checksum, if they have one, denies.
  Tensor read(std::size_t index) const;

 private:
  std::string file_;
  Hdf5Handle image_;
  std::vector<TensorInfo> tensors_;
  std::optional<std::string> metadata_;
};

}  // namespace lockstep::io
