#include "data/tool/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <system_error>
#include <utility>

#include "data/tool/part_file.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), part_(path_) {
  part_ += ".part";
  file_ = open_part(part_, O_WRONLY | O_TRUNC);
}

OutputFile::~OutputFile() {
  if (!committed_) unlink(part_.c_str());
}

void OutputFile::write(std::span<const std::uint8_t> bytes) { write_all(file_, bytes, part_); }

void OutputFile::commit() {
  const int flushed = fsync(file_.get());
  check_call(flushed == 0, part_.string(), "cannot be written to the disk");
  const int closed = file_.close();
  check_call(closed == 0, part_.string(), "cannot be closed");
  std::error_code error;
  std::filesystem::rename(part_, path_, error);
  check(!error, path_.string(), "its .part file cannot be renamed: {}", error.message());
  committed_ = true;
}

}  // namespace lockstep::datasets
