#include "data/tool/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

OutputFile::OutputFile(std::filesystem::path path) : path_(std::move(path)), part_(path_) {
  part_ += ".part";
  descriptor_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  check(descriptor_ >= 0, part_.string(), "cannot be opened for writing: {}", reason());
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (!committed_) unlink(part_.c_str());
}

void OutputFile::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    check(written >= 0 || errno == EINTR, part_.string(), "cannot be written: {}", reason());
    bytes = bytes.subspan(static_cast<std::size_t>(written < 0 ? 0 : written));
  }
}

void OutputFile::commit() {
  check(fsync(descriptor_) == 0, part_.string(), "cannot be written to the disk: {}", reason());
  const int code = close(std::exchange(descriptor_, -1));
  check(code == 0, part_.string(), "cannot be closed: {}", reason());
  std::error_code error;
  std::filesystem::rename(part_, path_, error);
  check(!error, path_.string(), "its .part file cannot be renamed: {}", error.message());
  committed_ = true;
}

}  // namespace lockstep::datasets
