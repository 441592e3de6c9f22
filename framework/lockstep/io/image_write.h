// Writes named tensors to an HDF5 file, one by one, each with a checksum (attribute "xxh3-64" of its dataset: XXH3-64
// of its values, little-endian), into the layout of image_layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/image_layout.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::io {

// Holds the file without the tensors' values. One thread at a time.
class ImageStream {
 public:
  // Requests each tensor once, to compute its checksum. `file` names the file in messages. Throws Error with the
  // tensor's name if HDF5 cannot store that name, if it is given twice, or if the tensor has no memory.
  ImageStream(TensorSource tensors, const ImageOptions& options, std::string file);

  std::uint64_t bytes() const { return layout_.bytes; }  // size of the HDF5 data, without the user block
  // Passes all bytes after the user block to `out`, in order; requests each tensor once more. Values are little-endian,
  // contiguous and in logical order, without time stamps, so equal tensors give equal bytes. Throws Error if a tensor's
  // values have changed since the constructor.
  void write(const std::function<void(std::span<const std::byte>)>& out) const;

 private:
  const Tensor& tensor(std::size_t index) const;

  TensorSource tensors_;
  std::string file_;
  std::vector<std::uint64_t> checksums_;  // by tensor
  ImageLayout layout_;
};

}  // namespace lockstep::io
