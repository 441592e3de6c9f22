// A message under way, from Communicator::isend or irecv; completes in test() or wait(). The buffer stays the caller's
// and must live until then. Move-only; one thread at a time. A Request dropped while active is withdrawn or waited for,
// so MPI never writes into memory that is gone. test() and wait() throw lockstep::Error if MPI fails or if the message
// that arrived is of another length than the buffer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/comm/buffer.h"

namespace lockstep::comm {

class CommunicatorState;

class Request {
 public:
  Request() = default;
  ~Request();
  Request(Request&& other) noexcept;
  Request& operator=(Request&& other) noexcept;

  // Whether there is still something to wait for; false for an empty Request.
  bool active() const { return state_ != nullptr; }
  // Drives the message on; true once it is complete (and from then on).
  bool test();
  void wait();

 private:
  friend class Communicator;
  // One MPI message; a long one has several. `handle` is MPI's request, of whatever type, in its bytes.
  struct Part {
    std::uintptr_t handle = 0;
    int count = 0;
  };
  Request(std::shared_ptr<CommunicatorState> state, bool receives, int peer, int tag, Element element)
      : state_(std::move(state)), receives_(receives), peer_(peer), tag_(tag), element_(element) {}
  void add(Part part);
  bool complete_next(bool block);
  void withdraw() noexcept;

  std::shared_ptr<CommunicatorState> state_;
  bool receives_ = false;
  int peer_ = 0, tag_ = 0;
  Element element_ = Element::Byte;
  // The first part lies here, so that an ordinary message costs no allocation.
  Part first_;
  std::vector<Part> more_;
  std::size_t parts_ = 0, done_ = 0;
};

void wait_all(std::span<Request> requests);
// Drives all of them on; true once all are complete.
bool test_all(std::span<Request> requests);

}  // namespace lockstep::comm
