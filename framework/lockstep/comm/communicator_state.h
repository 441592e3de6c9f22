// Inside comm/ only, because it includes mpi.h: the state of a Communicator. Only here MPI's codes are checked and
// counts are narrowed to MPI's int.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/comm/buffer.h"
#include "lockstep/comm/c_mpi.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/comm/topology.h"
#include "lockstep/core/format.h"

namespace lockstep::comm {

// Users' tags are smaller; gather, scatter and alltoallv use tags from here on. MPI guarantees tags up to 32767.
inline constexpr int kFirstInternalTag = Communicator::kMaxTag + 1;
enum InternalTag : int { kGatherTag = kFirstInternalTag, kScatterTag, kAllToAllTag };

// Shared by a communicator and everything split from it.
struct Poison {
  std::atomic<bool> set{false};
  std::mutex mutex;
  std::string reason;
  std::chrono::steady_clock::time_point since;
  // True: a message could not be cancelled, so MPI may read or write its memory until the job ends.
  std::atomic<bool> abandoned{false};
};

// Owns an MPI_Comm: frees it in the destructor, unless MPI is finalised.
class OwnedComm {
 public:
  OwnedComm() = default;
  explicit OwnedComm(MPI_Comm handle) : handle_(handle) {}
  ~OwnedComm();
  OwnedComm(OwnedComm&& other) noexcept : handle_(std::exchange(other.handle_, MPI_COMM_NULL)) {}
  OwnedComm& operator=(OwnedComm&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  MPI_Comm get() const { return handle_; }
  MPI_Comm release() { return std::exchange(handle_, MPI_COMM_NULL); }

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
};

class CommunicatorState {
 public:
  // Takes ownership of `handle` and makes it return error codes.
  CommunicatorState(MPI_Comm handle, std::shared_ptr<Poison> shared_poison, std::int64_t limit, std::string host_name);
  ~CommunicatorState();

  MPI_Comm handle() const { return comm_.get(); }

  // Begins an operation: throws Error if MPI is not running or the communicator is poisoned.
  void begin(std::string_view operation) const;
  // Poisons and throws Error unless `code` is success; the detail is formatted only on failure.
  template <class... Args>
  void verify(int code, std::string_view operation, FormatFor<std::type_identity_t<Args>...> format,
              const Args&... args) {
    if (code != MPI_SUCCESS) [[unlikely]] {
      fail_code(code, operation, format_arguments(format.text(), {args...}));
    }
  }
  // Throws Error with rank and host for wrong arguments; does not poison, because nothing was sent.
  template <class... Args>
  void require(bool condition, std::string_view operation, FormatFor<std::type_identity_t<Args>...> format,
               const Args&... args) const {
    if (!condition) [[unlikely]] {
      fail_argument(operation, format_arguments(format.text(), {args...}));
    }
  }
  void require_rank(int candidate, std::string_view operation, std::string_view role) const {
    require(candidate >= 0 && candidate < size, operation, "{} {} is outside 0..{}", role, candidate, size - 1);
  }
  void set_poison(std::string_view reason);

  // Narrows int64 counts to MPI's int: calls body(offset, count) for consecutive parts of at most message_limit bytes
  // and INT_MAX elements, at least once, because an empty message is a message too.
  template <class Body>
  void for_each_chunk(std::int64_t count, Element element, Body&& body) const {
    const std::int64_t limit = chunk_limit(element);
    std::int64_t offset = 0;
    do {
      const std::int64_t part = std::min(count - offset, limit);
      body(offset, static_cast<int>(part));
      offset += part;
    } while (offset < count);
  }
  std::int64_t chunk_limit(Element element) const {
    return std::clamp<std::int64_t>(message_limit / size_of(element), 1, std::numeric_limits<int>::max());
  }
  bool fits_one_message(std::int64_t count, Element element) const { return count <= chunk_limit(element); }

  // Poisons and throws Error: the message that arrived is not the expected one.
  [[noreturn]] void fail_transfer(std::string_view operation, const std::string& detail);

  int rank = 0, size = 1;
  std::int64_t message_limit;
  std::shared_ptr<Poison> poison;
  std::string host;
  Topology topology;
  std::vector<int> parent_ranks;                                // rank i here is parent_ranks[i] in the parent
  std::map<std::string, std::unique_ptr<Communicator>> groups;  // null if this rank is not a member
  std::string group_name;                                       // "node", "cross" or a caller's name; empty: no group

 private:
  OwnedComm comm_;
  [[noreturn]] void fail_code(int code, std::string_view operation, const std::string& detail);
  [[noreturn]] void fail_argument(std::string_view operation, const std::string& detail) const;
};

// Throws Error unless there is a count for each rank, none is negative, and they sum to `total`, the elements of a
// buffer.
void require_counts(const CommunicatorState& state, std::string_view operation, std::span<const std::int64_t> counts,
                    std::int64_t total);

MPI_Datatype to_mpi(Element element);

inline std::uintptr_t pack_request(MPI_Request request) {
  static_assert(sizeof(MPI_Request) <= sizeof(std::uintptr_t));
  std::uintptr_t bytes = 0;
  std::memcpy(&bytes, &request, sizeof(request));
  return bytes;
}

inline MPI_Request unpack_request(std::uintptr_t bytes) {
  MPI_Request request;
  std::memcpy(&request, &bytes, sizeof(request));
  return request;
}

}  // namespace lockstep::comm
