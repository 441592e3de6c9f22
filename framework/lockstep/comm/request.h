// The handle of a message or a collective under way, from Communicator::isend, irecv, iallreduce, iallgather or
// ibarrier; it completes in test() or wait(). Move-only; one thread at a time. test() and wait() throw lockstep::Error
// if MPI fails, if a message has another length than its buffer, or if the communicator is poisoned and the request is
// not complete.
//
// The destructor of an active Request does not wait for other ranks: it cancels a receive; a send, which MPI cannot
// cancel, still arrives. A message that is neither cancelled nor complete after one second is left to MPI, together
// with its memory (see Keeper). After the destructor, MPI neither reads nor writes the caller's memory.
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

// Owns the memory of a message as long as MPI may read or write it, which may be until the process ends. A message that
// is started without a Keeper is copied through memory of the library. An empty Keeper declares that the memory lives
// long enough anyway, as a SharedWindow's does.
using Keeper = std::shared_ptr<const void>;

// Keeps `memory` until the process ends: for owners that are destroyed after Communicator::has_abandoned() became true.
void keep_for_ever(Keeper memory);

class Request {
 public:
  Request() = default;
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  // Returns whether the message is still under way; false for an empty Request.
  bool active() const { return state_ != nullptr; }
  // Makes progress; returns true once the message is complete, and at every later call.
  bool test();
  void wait();
  // Does what the destructor does. Returns whether MPI has done with the memory of the message; if not, it is left to
  // MPI. The Request is empty afterwards.
  bool give_up() noexcept;

 private:
  friend class Communicator;
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  // Describes the message in errors; a collective has no `peer` and `tag`.
  struct Description {
    Kind kind = Kind::Send;
    std::string_view operation = {};
    int peer = 0, tag = 0;
    Element element = Element::Byte;
  };
  // One MPI message; a long message has several parts. `handle` contains the bytes of an MPI_Request.
  struct Part {
    std::uintptr_t handle = 0;
    int count = 0;
  };
  // The copy that a receive through the library's memory makes when all bytes have arrived.
  struct Arrival {
    const void* from = nullptr;
    void* to = nullptr;
    std::size_t bytes = 0;
  };
  Request(std::shared_ptr<CommunicatorState> state, const Description& description, Keeper keeper, bool copied)
      : state_(std::move(state)), description_(description), keeper_(std::move(keeper)), copied_(copied) {}
  void add(Part part);
  Part& part(std::size_t i) { return i == 0 ? first_ : more_[i - 1]; }
  std::string describe(const Part& part) const;
  bool complete_next();
  void finish();

  std::shared_ptr<CommunicatorState> state_;
  Description description_;
  Keeper keeper_;
  Arrival arrival_;
  bool copied_ = false;  // the message uses the library's memory, which only `keeper_` owns
  // The first part is a member, so that an ordinary message needs no allocation.
  Part first_;
  std::vector<Part> more_;
  std::size_t parts_ = 0, done_ = 0;
};

void wait_all(std::span<Request> requests);
// Makes progress on all requests; returns true once all are complete.
bool test_all(std::span<Request> requests);

}  // namespace lockstep::comm
