// Tries at the start of a job whether gradients will be summed rightly: MPI libraries, fabrics and drivers do return
// wrong sums. Takes milliseconds and some hundred KiB.
#pragma once

#include <span>
#include <string_view>

#include "lockstep/parallel/reduce/bucket_reducer.h"

namespace lockstep::parallel {

struct SelfTestOptions {
  Domains domains;  // of the path that is tried
  ReducerOptions reduction = {};
  std::int64_t elements = 100'003;
  std::uint64_t seed = 1;
};

// Reduces random numbers, whose sums every type and wire holds exactly, in the way of the training step, and by a plain
// MPI allreduce. Collective; throws AgreedError on all ranks where bits differ, naming path, element and both values.
void check_paths(const comm::Communicator& comm, const SelfTestOptions& options);

// The comparison by itself: collective, throws like check_paths(). T is float or double.
template <class T>
void check_sums(const comm::Communicator& comm, std::string_view path, std::span<const T> sums,
                std::span<const T> expected);

}  // namespace lockstep::parallel
