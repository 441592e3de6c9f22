// Reads named tensors, one by one, from an HDF5 file in memory, and verifies the checksums that the file has (see
// image_write.h). HDF5's core driver uses the caller's bytes without a copy.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::io {

// An open file image. One thread at a time.
class ImageReader {
 public:
  // Lists every dataset, of either endianness and any layout inside the file. `image` must outlive this object; `file`
  // names it in messages. Throws Error if an object is no tensor of a DType, or claims a size that the image cannot
  // hold. HDF5 parses the image: verify its hash first if it has one.
  ImageReader(std::span<const std::byte> image, std::string file);
  ImageReader(const ImageReader&) = delete;
  ImageReader& operator=(const ImageReader&) = delete;
  ~ImageReader();

  const std::vector<TensorInfo>& tensors() const { return tensors_; }       // sorted by name
  const std::optional<std::string>& metadata() const { return metadata_; }  // the string dataset "metadata"
  // Reads the values of tensors()[index]; throws Error if the tensor has a checksum that does not match.
  Tensor read(std::size_t index) const;
  // Reads rows [range) along the first axis of tensors()[index]; verifies no checksum. Throws Error for rows that the
  // tensor does not have.
  Tensor read_rows(std::size_t index, Range rows) const;

 private:
  std::string file_;
  Hdf5Handle image_;
  std::vector<TensorInfo> tensors_;
  std::optional<std::string> metadata_;
};

}  // namespace lockstep::io
