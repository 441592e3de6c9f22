#include "lockstep/io/tensor_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::io {
namespace {

constexpr std::string_view kSpoolSite = "checkpoint";
constexpr std::size_t kBlock = std::size_t{16} << 20;  // bytes per call of the system
constexpr const char* kName = ".lockstep-spool";       // for a moment, where a file system has no files without a name

[[noreturn]] void fail_system(const std::string& path, int code, std::string_view operation, std::string_view content) {
  fail(kSpoolSite, "{}: {} a file for {}: {}", path, operation, content, std::generic_category().message(code));
}

FileDescriptor open_unnamed(const Folder& folder, const std::string& content) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC;
  FileDescriptor file(::openat(folder.descriptor(), ".", kFlags | O_TMPFILE, 0600));
  if (file.open()) return file;
  const std::string name = kName + std::to_string(::getpid());
  file = FileDescriptor(::openat(folder.descriptor(), name.c_str(), kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!file.open()) fail_system(folder.path().string(), errno, "create", content);
  ::unlinkat(folder.descriptor(), name.c_str(), 0);
  return file;
}

}  // namespace

TensorSpool::TensorSpool(const Folder& folder, std::string content)
    : path_(folder.path().string()), content_(std::move(content)), file_(open_unnamed(folder, content_)) {}

void TensorSpool::begin(TensorInfo info) {
  offsets_.push_back(written_);
  infos_.push_back(std::move(info));
}

void TensorSpool::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(file_.get(), bytes.data(), std::min(bytes.size(), kBlock), static_cast<off_t>(written_));
    const int code = n == 0 ? EIO : errno;
    if (n < 0 && code == EINTR) continue;
    if (n <= 0) fail_system(path_, code, "write to", content_);
    written_ += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

TensorSource TensorSpool::tensors() {
  TensorSource source{.infos = infos_, .tensor = [this](std::size_t i) -> const NamedTensor& { return read(i); }};
  check(source.bytes() == written_, kSpoolSite, "{}: {} bytes of {}, expected {}", path_, written_, content_,
        source.bytes());
  return source;
}

const NamedTensor& TensorSpool::read(std::size_t index) {
  const TensorInfo& info = infos_[index];
  current_ = {};  // frees its memory before the next tensor is made
  current_ = {info.name, Tensor(info.shape, info.dtype)};
  const std::span<std::byte> out(current_.tensor.raw(), info.bytes());
  for (std::size_t have = 0; have < out.size();) {
    const ssize_t n = ::pread(file_.get(), out.data() + have, std::min(out.size() - have, kBlock),
                              static_cast<off_t>(offsets_[index] + have));
    const int code = n == 0 ? EIO : errno;
    if (n < 0 && code == EINTR) continue;
    if (n <= 0) fail_system(path_, code, "read from", content_);
    have += static_cast<std::size_t>(n);
  }
  return current_;
}

}  // namespace lockstep::io
