#include "lockstep/train/report/patient_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "lockstep/core/log.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kMostWaiting = 8 << 20;  // bytes

}  // namespace

void PatientFile::open(io::FileDescriptor file, std::filesystem::path path) {
  file_ = std::move(file);
  path_ = std::move(path);
  if (std::exchange(written_, 0) == 0) return;
  bytes_ -= waiting_.front().size();
  waiting_.pop_front();  // its start is in the other file
  ++lost_;
}

void PatientFile::prepend(std::string record) {
  bytes_ += record.size();
  waiting_.push_front(std::move(record));
}

void PatientFile::append(std::string record) {
  const bool room = bytes_ + record.size() <= kMostWaiting;
  if (room) {
    bytes_ += record.size();
    waiting_.push_back(std::move(record));
  } else {
    ++lost_;
  }
  if (const int code = write_out(); code != 0) {
    if (!std::exchange(failing_, true))
      log()->warn("[{}] cannot write {}: {}; training goes on, and {}s wait in memory", site_, path_.string(),
                  std::strerror(code), unit_);
  } else if (std::exchange(failing_, false)) {
    const std::string gap = lost_ > 0 ? fmt::format("; {} {}s that did not fit in memory are lost", lost_, unit_) : "";
    log()->warn("[{}] {} can be written again; the waiting {}s are in it{}", site_, path_.string(), unit_, gap);
    lost_ = 0;
  }
}

// Writes what waits, and stops inside a record where it must. Returns 0 or the error number.
int PatientFile::write_out() {
  while (!waiting_.empty()) {
    const std::string& first = waiting_.front();
    const ssize_t n = ::write(file_.get(), first.data() + written_, first.size() - written_);
    if (n < 0 && errno != EINTR) return errno;
    if (n > 0) written_ += static_cast<std::size_t>(n);
    if (written_ < first.size()) continue;
    bytes_ -= first.size();
    waiting_.pop_front();
    written_ = 0;
  }
  return 0;
}

PatientFile::~PatientFile() {
  if (waiting_.empty()) return;
  if (const int code = write_out(); code != 0)
    log()->warn("[{}] the last {} bytes of {} are lost: {}", site_, bytes_ - written_, path_.string(),
                std::strerror(code));
}

}  // namespace lockstep::train
