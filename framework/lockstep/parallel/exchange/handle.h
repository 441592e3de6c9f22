// A reduction under way, as Allreduce::iallreduce and ireduce_scatter return it. It moves on inside test() and wait()
// of any handle of its engine, on the thread that calls them: no thread of the library's works for it. Until it is
// complete the caller leaves input and output alone.
//
// Destroying a handle whose reduction is not complete waits for it, as other ranks need this rank's part, and logs what
// fails meanwhile. While an exception passes it does not wait: the engine is then out of use, here and, where ranks
// share memory, on the other ranks too, whose calls throw. In both cases the caller's memory is the caller's again.
// The engine outlives its handles; wait() and test() of a handle that is left throw Error.
#pragma once

#include <exception>
#include <memory>

namespace lockstep::parallel {

// What a handle drives.
class Reduction {
 public:
  virtual ~Reduction() = default;
  virtual bool advance() = 0;           // drives; whether something moved; throws where ranks or MPI fail
  virtual bool complete() = 0;          // throws what was wrong with the call
  virtual void give_up() noexcept = 0;  // it is not waited for
};

// Move-only; one thread at a time, that of the engine.
class Handle {
 public:
  Handle() = default;  // of nothing, which is complete
  explicit Handle(std::shared_ptr<Reduction> reduction) : reduction_(std::move(reduction)) {}
  ~Handle() { finish(); }
  Handle(Handle&& other) noexcept : reduction_(std::move(other.reduction_)) {}
  Handle& operator=(Handle&& other) noexcept;

  // Whether there is something to wait for.
  bool active() const { return reduction_ != nullptr; }
  // Drives the reduction on; true once the result is there. Throws AgreedError, alike on all ranks, where calls of
  // ranks differ or one is wrong; Error where a rank or MPI fails. After it threw, the handle is of nothing.
  bool test();
  void wait();

 private:
  void finish() noexcept;

  std::shared_ptr<Reduction> reduction_;
  int exceptions_ = std::uncaught_exceptions();  // when it was made
};

}  // namespace lockstep::parallel
