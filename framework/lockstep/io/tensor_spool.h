// Tensors that are larger than memory may hold, on their way into a file: they are appended piece by piece to a file
// without a name, which disappears with this object or its process, and read back one at a time. One thread appends;
// then one thread at a time reads. Throws Error with the folder, the operation and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"
#include "lockstep/io/tensor_source.h"

namespace lockstep::io {

class TensorSpool {
 public:
  // The file takes its space in the file system of `folder`. `content` names the tensors in messages.
  explicit TensorSpool(const Folder& folder, std::string content = "past samples");

  // Begins the next tensor, whose bytes follow in append().
  void begin(TensorInfo info);
  void append(std::span<const std::byte> bytes);
  // Returns the tensors. The source must not outlive this object. Throws Error if the bytes are not those of the
  // tensors that were begun.
  TensorSource tensors();

 private:
  const NamedTensor& read(std::size_t index);

  std::string path_, content_;
  FileDescriptor file_;
  std::vector<TensorInfo> infos_;
  std::vector<std::uint64_t> offsets_;  // by tensor
  std::uint64_t written_ = 0;
  NamedTensor current_;  // the tensor that was read last
};

}  // namespace lockstep::io
