// Ownership and errors for HDF5's C API, without its header: a handle that closes its object, a session that holds the
// process-wide lock, and checks that put HDF5's own error text into an Error.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep::io {

using Hdf5Id = std::int64_t;  // hid_t

// Every use of HDF5 must be inside the lifetime of a session. Sessions of different threads exclude each other, because
// clusters often have HDF5 without thread safety. During a session HDF5 prints no errors in this thread; the destructor
// restores the caller's error handler.
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

// Waits until no session is open; no thread can begin one as long as the caller holds the lock.
std::unique_lock<std::mutex> lock_hdf5();

// Returns `code`; throws Error("[site] file: operation: <HDF5's messages>") if it is negative (HDF5's failure), and
// Unavailable (core/error.h) with this text if HDF5 got no memory.
std::int64_t check_hdf5(std::int64_t code, std::string_view file, std::string_view operation,
                        std::string_view site = "checkpoint");

// Owns one HDF5 object. Members close in reverse order of declaration, so declare a file before the objects in it.
class Hdf5Handle {
 public:
  using Close = int (*)(Hdf5Id);

  Hdf5Handle() = default;
  // Takes ownership of an id that `operation` returned; throws as check_hdf5() does if the id is negative.
  Hdf5Handle(Hdf5Id id, Close closer, std::string_view file, std::string_view operation,
             std::string_view site = "checkpoint")
      : id_(check_hdf5(id, file, operation, site)), close_(closer) {}
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
  // Closes now; throws Error on failure, which the destructor cannot do.
  void close(std::string_view file, std::string_view operation) {
    check_hdf5(close_(std::exchange(id_, -1)), file, operation);
  }

 private:
  Hdf5Id id_ = -1;
  Close close_ = nullptr;
};

}  // namespace lockstep::io
