#include "lockstep/comm/request.h"

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "lockstep/comm/communicator_state.h"
#include "lockstep/comm/environment.h"

namespace lockstep::comm {

Request::Request(Request&& other) noexcept { *this = std::move(other); }

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    withdraw();
    state_ = std::exchange(other.state_, nullptr);
    receives_ = other.receives_;
    peer_ = other.peer_;
    tag_ = other.tag_;
    element_ = other.element_;
    first_ = other.first_;
    more_ = std::exchange(other.more_, {});
    parts_ = std::exchange(other.parts_, 0);
    done_ = std::exchange(other.done_, 0);
  }
  return *this;
}

Request::~Request() { withdraw(); }

void Request::add(Part part) {
  if (parts_++ == 0) {
    first_ = part;
  } else {
    more_.push_back(part);
  }
}

bool Request::complete_next(bool block) {
  Part& part = done_ == 0 ? first_ : more_[done_ - 1];
  const std::string_view operation = receives_ ? "recv" : "send";
  const std::string_view direction = receives_ ? "from" : "to";
  MPI_Request handle = unpack_request(part.handle);
  MPI_Status status;
  int complete = 1;
  const int code = block ? MPI_Wait(&handle, &status) : MPI_Test(&handle, &complete, &status);
  part.handle = pack_request(handle);
  state_->verify(code, operation, "{} {} {} rank {}, tag {}", part.count, name_of(element_), direction, peer_, tag_);
  if (complete == 0) {
    return false;
  }
  ++done_;
  if (receives_) {
    int received = 0;
    state_->verify(MPI_Get_count(&status, to_mpi(element_), &received), operation, "count from rank {}", peer_);
    if (received != part.count) {
      state_->fail_transfer(operation, fmt::format("{} {} from rank {}, tag {}: expected {}", received,
                                                   name_of(element_), peer_, tag_, part.count));
    }
  }
  return true;
}

bool Request::test() {
  while (active()) {
    if (!complete_next(false)) {
      return false;
    }
    if (done_ == parts_) {
      state_.reset();
    }
  }
  return true;
}

void Request::wait() {
  while (active()) {
    complete_next(true);
    if (done_ == parts_) {
      state_.reset();
    }
  }
}

// A receive can be taken back; a send cannot, so it is waited for. While an exception passes through, and on a poisoned
// communicator, the other side may never come: after a second (one for all that the poison leaves) the handle is given
// up, since a job that is about to end must not hang here.
void Request::withdraw() noexcept {
  if (!active()) {
    return;
  }
  if (Environment::active()) {
    const bool poisoned = state_->poison->set.load(std::memory_order_acquire);
    const bool may_give_up = poisoned || std::uncaught_exceptions() > 0;
    const auto deadline =
        (poisoned ? state_->poison->since : std::chrono::steady_clock::now()) + std::chrono::seconds(1);
    for (std::size_t i = done_; i < parts_; ++i) {
      MPI_Request handle = unpack_request(i == 0 ? first_.handle : more_[i - 1].handle);
      if (handle == MPI_REQUEST_NULL) {
        continue;
      }
      if (receives_) {
        MPI_Cancel(&handle);
      }
      int complete = 0;
      while (MPI_Test(&handle, &complete, MPI_STATUS_IGNORE) == MPI_SUCCESS && complete == 0 &&
             !(may_give_up && std::chrono::steady_clock::now() > deadline)) {
        std::this_thread::yield();
      }
      if (handle != MPI_REQUEST_NULL) {
        MPI_Request_free(&handle);
      }
    }
  }
  state_.reset();
}

void wait_all(std::span<Request> requests) {
  for (Request& request : requests) {
    request.wait();
  }
}

bool test_all(std::span<Request> requests) {
  bool all = true;
  for (Request& request : requests) {
    all = request.test() && all;
  }
  return all;
}

}  // namespace lockstep::comm
