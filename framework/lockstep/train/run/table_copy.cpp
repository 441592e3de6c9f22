#include "lockstep/train/run/table_copy.h"

#include <exception>
#include <utility>

namespace lockstep::train {

void TableCopy::or_note(const std::function<void()>& work) {
  if (!error_.empty()) return;
  try {
    work();
  } catch (const std::exception& error) {
    error_ = error.what();
  }
}

void TableCopy::free() {
  kept_.clear();
  spool_.reset();
  error_.clear();
}

void TableCopy::begin(const io::Folder* folder) {
  free();
  if (folder != nullptr) or_note([&] { spool_ = std::make_unique<io::TensorSpool>(*folder, "sparse tables"); });
}

void TableCopy::take(io::NamedTensor tensor) {
  or_note([&] {
    if (spool_) {
      spool_->begin({tensor.name, tensor.tensor.shape(), tensor.tensor.dtype()});
      if (tensor.tensor.bytes() > 0) spool_->append({tensor.tensor.raw(), tensor.tensor.bytes()});
    } else {
      kept_.push_back(std::move(tensor));
    }
  });
}

void TableCopy::end() {
  or_note([&] {
    if (spool_) spool_->tensors();
  });
}

}  // namespace lockstep::train
