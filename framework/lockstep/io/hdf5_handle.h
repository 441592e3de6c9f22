// Ownership and errors for HDF5's C API, without its header: a handle that closes what it owns, a session that holds
// the process-wide lock, and checks that put HDF5's own error text into an Error.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::io {

using Hdf5Id = std::int64_t;  // hid_t

// Hold one around every use of HDF5: builds without thread safety are common on clusters, so threads take turns. While
// it lives, HDF5 prints no errors in this thread; the caller's error handler comes back with its end.
class Hdf5Session {
 public:
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  int (*print_)(Hdf5Id, void*) = nullptr;
  void* print_data_ = nullptr;
};

// Keeps every thread's sessions from beginning, once none is open.
std::unique_lock<std::mutex> hold_hdf5();

// Throws Error("[checkpoint] file: operation: <HDF5's messages>") if `code` is negative, as HDF5 reports failure; else
// returns it.
std::int64_t check_hdf5(std::int64_t code, std::string_view file, std::string_view operation);

// Owns one HDF5 object. Members close in reverse order of declaration, so declare a file before what lies in it.
class Hdf5Handle {
 public:
  using Close = int (*)(Hdf5Id);

  Hdf5Handle() = default;
  // Takes over a fresh id from `operation`; a negative one is a failure and throws as check_hdf5 does.
  Hdf5Handle(Hdf5Id id, Close closer, std::string_view file, std::string_view operation)
      : id_(check_hdf5(id, file, operation)), close_(closer) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Hdf5Handle() {
    if (id_ >= 0) close_(id_);
  }

  Hdf5Id get() const { return id_; }
  // Closes now and reports a failure, which the destructor cannot.
  void close(std::string_view file, std::string_view operation) {
    check_hdf5(close_(std::exchange(id_, -1)), file, operation);
  }

 private:
  Hdf5Id id_ = -1;
  Close close_ = nullptr;
};

}  // namespace lockstep::io
