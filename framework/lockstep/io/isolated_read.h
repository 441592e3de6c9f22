// Reads HDF5 files without a hash, such as weights that h5py wrote, in child processes: libhdf5 1.10 crashes on some
// damaged files, and then only the child crashes. A child has limited memory and processor time, sees memory that the
// caller shares with other processes as read-only, and sends tensors one by one through a pipe. Any thread may use it,
// also in an MPI process: a child uses no MPI, and ends by _exit.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/tensor_source.h"

namespace lockstep::io {

// Functions throw what those of ImageReader throw, and Error with `file` if a child crashed or reached a limit. One
// thread at a time.
class IsolatedImage {
 public:
  // Lists the tensors of an image, which must outlive this object.
  IsolatedImage(std::span<const std::byte> image, std::string file);
  ~IsolatedImage();
  IsolatedImage(const IsolatedImage&) = delete;
  IsolatedImage& operator=(const IsolatedImage&) = delete;

  const std::vector<TensorInfo>& tensors() const { return tensors_; }       // sorted by name
  const std::optional<std::string>& metadata() const { return metadata_; }  // the string dataset "metadata"
  // Reads tensors()[index]. One child reads small tensors that are asked for in their order; another order, and a large
  // tensor, takes a child for each.
  Tensor read(std::size_t index);
  // Reads rows [range) along its first axis; takes a child.
  Tensor read_rows(std::size_t index, Range rows);

 private:
  class Sender;
  std::span<const std::byte> image_;
  std::string file_;
  std::vector<TensorInfo> tensors_;
  std::optional<std::string> metadata_;
  std::unique_ptr<Sender> sender_;  // null: none is under way
  std::size_t next_ = 0;            // the tensor that it sends next
};

}  // namespace lockstep::io
