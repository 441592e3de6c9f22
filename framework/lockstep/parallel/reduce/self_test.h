// Tests at the start of a job that gradients are summed correctly, as MPI libraries, fabrics and drivers may return
// wrong sums. It takes some milliseconds and some hundred KiB.
#pragma once

#include <span>
#include <string_view>

#include "lockstep/parallel/reduce/bucket_reducer.h"

namespace lockstep::parallel {

struct SelfTestOptions {
  Domains domains;  // of the path under test
  ReducerOptions reduction = {};
  std::int64_t elements = 100'003;
  std::uint64_t seed = 1;
};

// Reduces random numbers, whose sums are exact in every type and wire, as a training step does and by a plain MPI
// allreduce. Collective. Throws AgreedError on all ranks where bits differ; it names path, element and both values.
void check_paths(const comm::Communicator& comm, const SelfTestOptions& options);

// The comparison alone. Collective; throws as check_paths() does. T is float or double.
template <class T>
void check_sums(const comm::Communicator& comm, std::string_view path, std::span<const T> sums,
                std::span<const T> expected);

}  // namespace lockstep::parallel
