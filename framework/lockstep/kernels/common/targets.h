// The check of class indices, for kernels that read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::kernels {

// The origin of the targets, for the SampleError about a target outside [0, classes).
struct TargetSource {
  std::string op = "cross_entropy", path = "", field = "";  // path: the node's module path; field: of the batch
};

struct TargetExtent {
  std::int64_t samples, positions;
};

// Throws SampleError for a target that is neither a class nor the ignored index. Call it before a parallel loop, as an
// exception must not leave such a loop.
void check_targets(TargetExtent size, std::int64_t classes, const std::int32_t* targets,
                   std::optional<std::int32_t> ignored, const TargetSource& source);

}  // namespace lockstep::kernels
