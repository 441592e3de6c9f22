// A checkpoint's copy of sparse tables, on rank 0, from which the writer takes them while training changes the tables:
// in memory up to a limit; above it in a file without a name beside the checkpoints (io/tensor_spool.h), to which they
// are written, one tensor at a time, before training goes on. One thread at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/io/folder.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/io/tensor_spool.h"

namespace lockstep::train {

class TableCopy {
 public:
  // Frees the last copy and begins one; with `folder`, in a file in that folder. take() is then called for each tensor.
  void begin(const io::Folder* folder);
  void take(io::NamedTensor tensor);
  void end();
  void free();  // frees memory, or the file's space
  // Why the copy could not be written; then take() does nothing, so that other ranks can send the rest. Empty: it
  // could.
  const std::string& error() const { return error_; }
  // Returns the tensors, which must not outlive this object or its next begin().
  io::TensorSource tensors() { return spool_ ? spool_->tensors() : io::source_of(kept_); }

 private:
  void or_note(const std::function<void()>& work);

  std::vector<io::NamedTensor> kept_;
  std::unique_ptr<io::TensorSpool> spool_;
  std::string error_;
};

}  // namespace lockstep::train
