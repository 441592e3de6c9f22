// A message or a collective under way, from Communicator::isend, irecv, iallreduce, iallgather or ibarrier; completes
// in test() or wait(). Move-only; one thread at a time. test() and wait() throw lockstep::Error if MPI fails, if a
// message that arrived is of another length than the buffer, or if the communicator is poisoned and the request
// is not complete.
//
// A Request that is dropped while active does not wait for other ranks: a receive is taken back; a send, which MPI
// cannot take back, still arrives. A message that cannot be taken back and has not completed a second later is left to
// MPI, with memory that stays (see Keeper). Once a Request is gone, MPI neither reads nor writes the caller's memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/comm/buffer.h"

namespace lockstep::comm {

class CommunicatorState;

// Keeps the memory of a message alive as long as MPI may read or write it, which may be until the process ends.
// Messages that are started without a Keeper go through memory of the library: their bytes are copied. An empty Keeper
// says that the memory stays without it, as that of a SharedWindow does.
using Keeper = std::shared_ptr<const void>;

// Keeps `memory` until the process ends. For owners that are destroyed while Communicator::has_abandoned().
void keep_for_ever(Keeper memory);

class Request {
 public:
  Request() = default;
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  // Whether the message is still under way; false for an empty Request.
  bool active() const { return state_ != nullptr; }
  // Drives the message on; true once it is complete (and from then on).
  bool test();
  void wait();

 private:
  friend class Communicator;
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  // A description for errors; a collective has no `peer` and `tag`.
  struct What {
    Kind kind = Kind::Send;
    std::string_view operation = {};
    int peer = 0, tag = 0;
    Element element = Element::Byte;
  };
  // One MPI message; a long one has several. `handle` is MPI's request, of whatever type, in its bytes.
  struct Part {
    std::uintptr_t handle = 0;
    int count = 0;
  };
  // Of a receive through the library's memory: the copy to make once all bytes are there.
  struct Arrival {
    const void* from = nullptr;
    void* to = nullptr;
    std::size_t bytes = 0;
  };
  Request(std::shared_ptr<CommunicatorState> state, const What& what, Keeper keeper, bool copied)
      : state_(std::move(state)), what_(what), keeper_(std::move(keeper)), copied_(copied) {}
  void add(Part part);
  Part& part(std::size_t i) { return i == 0 ? first_ : more_[i - 1]; }
  std::string describe(const Part& part) const;
  bool complete_next();
  void finish();
  void withdraw() noexcept;

  std::shared_ptr<CommunicatorState> state_;
  What what_;
  Keeper keeper_;
  Arrival arrival_;
  bool copied_ = false;  // the memory of the message is the library's, and `keeper_` alone holds it
  // The first part lies here, so that an ordinary message costs no allocation.
  Part first_;
  std::vector<Part> more_;
  std::size_t parts_ = 0, done_ = 0;
};

void wait_all(std::span<Request> requests);
// Drives all of them on; true once all are complete.
bool test_all(std::span<Request> requests);

}  // namespace lockstep::comm
