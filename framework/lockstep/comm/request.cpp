#include "lockstep/comm/request.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "lockstep/comm/abandoned.h"
#include "lockstep/comm/communicator_state.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/backoff.h"

namespace lockstep::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Time to wait for messages that cannot be cancelled: once after a poison for all messages together, and not at all
// after a message was left to MPI.
constexpr std::chrono::seconds kPatience{1};

Clock::time_point limit_of(const Poison& poison) {
  if (poison.abandoned.load(std::memory_order_acquire)) return {};
  return (poison.set.load(std::memory_order_acquire) ? poison.since : Clock::now()) + kPatience;
}

// Tests several times also after the limit: a cancelled message needs some tests to complete.
bool completes_until(Clock::time_point limit, MPI_Request& handle) {
  constexpr int kLooks = 16;
  for (int looks = 0; looks < kLooks || Clock::now() < limit; ++looks) {
    int complete = 0;
    if (MPI_Test(&handle, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS) return handle == MPI_REQUEST_NULL;
    if (complete != 0) return true;
    std::this_thread::yield();
  }
  return false;
}

}  // namespace

Request::Request(Request&& other) noexcept { *this = std::move(other); }

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    give_up();
    state_ = std::exchange(other.state_, nullptr);
    description_ = other.description_;
    keeper_ = std::exchange(other.keeper_, nullptr);
    arrival_ = other.arrival_;
    copied_ = other.copied_;
    first_ = other.first_;
    more_ = std::exchange(other.more_, {});
    parts_ = std::exchange(other.parts_, 0);
    done_ = std::exchange(other.done_, 0);
  }
  return *this;
}

Request::~Request() { give_up(); }

void Request::add(Part part) {
  if (parts_++ == 0) {
    first_ = part;
  } else {
    more_.push_back(part);
  }
}

std::string Request::describe(const Part& part) const {
  std::string what = formatted("{} {}", part.count, name_of(description_.element));
  if (description_.kind == Kind::Collective) return what;
  return formatted("{} {} rank {}, tag {}", what, description_.kind == Kind::Receive ? "from" : "to", description_.peer,
                   description_.tag);
}

bool Request::complete_next() {
  if (!Environment::active()) [[unlikely]]
    state_->begin(description_.operation);  // throws: after MPI_Finalize, even a test of a request is an error
  Part& next = part(done_);
  MPI_Request handle = unpack_request(next.handle);
  MPI_Status status;
  int complete = 1;
  const int code = MPI_Test(&handle, &complete, &status);
  next.handle = pack_request(handle);
  if (code != MPI_SUCCESS) state_->verify(code, description_.operation, "{}", describe(next));
  if (complete == 0) {
    // The message may never complete: throws the reason of the poison.
    if (state_->poison->set.load(std::memory_order_acquire)) state_->begin(description_.operation);
    return false;
  }
  ++done_;
  if (description_.kind == Kind::Receive) {
    int received = 0;
    state_->verify(MPI_Get_count(&status, to_mpi(description_.element), &received), description_.operation,
                   "count from rank {}", description_.peer);
    if (received != next.count) {
      state_->fail_transfer(description_.operation,
                            formatted("{} {} from rank {}, tag {}: expected {}", received,
                                      name_of(description_.element), description_.peer, description_.tag, next.count));
    }
  }
  return true;
}

void Request::finish() {
  if (arrival_.bytes > 0) std::memcpy(arrival_.to, arrival_.from, arrival_.bytes);
  keeper_.reset();
  state_.reset();
}

bool Request::test() {
  while (active()) {
    if (!complete_next()) return false;
    if (done_ == parts_) finish();
  }
  return true;
}

void Request::wait() {
  for (Backoff pause; !test();) pause.pause();
}

bool Request::give_up() noexcept {
  if (!active()) return true;
  const std::shared_ptr<CommunicatorState> state = std::move(state_);
  const Keeper keeper = std::move(keeper_);
  if (!Environment::active()) return true;
  bool done = true;
  // Only this message owns the copied bytes, so it can be left to MPI at once.
  const bool waits = !(copied_ && description_.kind == Kind::Send);
  for (std::size_t i = done_; i < parts_; ++i) {
    MPI_Request handle = unpack_request(part(i).handle);
    if (handle == MPI_REQUEST_NULL) continue;
    if (description_.kind == Kind::Receive) MPI_Cancel(&handle);
    if (completes_until(waits ? limit_of(*state->poison) : Clock::time_point{}, handle)) continue;
    if (waits) {
      state->poison->abandoned.store(true, std::memory_order_release);
      done = false;
    }
    abandon({state, handle, keeper});
  }
  return done;
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
