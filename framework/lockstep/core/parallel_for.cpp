#include "lockstep/core/parallel_for.h"

#include <omp.h>

#include <algorithm>

#include "lockstep/core/partition.h"

namespace lockstep {
namespace {
constexpr std::int64_t kParallelWork = 32768;  // elements; below it, waking threads costs more than they save
}

void detail::run_ranges(std::int64_t count, std::int64_t work, RangeBody body, const void* context) {
  if (count <= 0) return;
  if (count == 1 || count <= kParallelWork / std::max<std::int64_t>(work, 1) || omp_in_parallel() ||
      omp_get_max_threads() == 1) {
    body(context, 0, count);
    return;
  }
#pragma omp parallel
  {
    const Range part = part_of(count, omp_get_num_threads(), omp_get_thread_num());
    if (part.size() > 0) body(context, part.begin, part.end);
  }
}

}  // namespace lockstep
