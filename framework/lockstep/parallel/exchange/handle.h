// A reduction in progress; Allreduce::iallreduce and ireduce_scatter return it. It makes progress inside test() and
// wait() of any handle of its engine, on the calling thread; the library has no thread for it. The caller does not
// touch input and output until the handle is complete.
//
// The destructor of a handle that is not complete waits for the reduction, as other ranks need this rank's part, and
// logs an error if that fails. While an exception unwinds the stack it does not wait: the engine then cannot be used
// any more, on this rank and, where ranks share memory, on the other ranks, whose calls throw. In both cases the caller
// may use its memory again afterwards, unless the log says that MPI may still read and write it: a message that cannot
// be cancelled, or with the path `Mpi`, which cannot give up, a reduction that is not complete after a second.
//
// The engine must outlive its handles. An engine that is destroyed before gives up its reductions: the log says so,
// wait() and test() of their handles throw Error, and so do calls of other ranks that wait for this rank. With the path
// `Mpi`, which cannot give up, the destructor of the engine waits for its reductions instead.
#pragma once

#include <exception>
#include <memory>

namespace lockstep::parallel {

// The operation behind a handle.
class Reduction {
 public:
  virtual ~Reduction() = default;
  virtual bool advance() = 0;           // makes progress; whether something moved; throws where a rank or MPI fails
  virtual bool complete() = 0;          // throws the error of the call
  virtual void give_up() noexcept = 0;  // abandons the reduction
};

// Makes progress until the reduction is complete; throws the errors of advance() and complete().
void drive(Reduction& reduction);

// Move-only. One thread at a time, the thread of the engine.
class Handle {
 public:
  Handle() = default;  // an empty handle, which is complete
  explicit Handle(std::shared_ptr<Reduction> reduction) : reduction_(std::move(reduction)) {}
  ~Handle() { finish(); }
  Handle(Handle&& other) noexcept : reduction_(std::move(other.reduction_)) {}
  Handle& operator=(Handle&& other) noexcept;

  // Whether the handle has a reduction whose completion test() or wait() has not yet reported.
  bool active() const { return reduction_ != nullptr; }
  // test() makes progress and returns true once the reduction is complete; wait() returns when it is. Both throw
  // AgreedError, alike on all ranks, where calls of ranks differ or one is wrong, and Error where a rank or MPI fails.
  // After an exception the handle is empty.
  bool test();
  void wait();

 private:
  void finish() noexcept;

  std::shared_ptr<Reduction> reduction_;
  int exceptions_ = std::uncaught_exceptions();  // when it was made
};

}  // namespace lockstep::parallel
