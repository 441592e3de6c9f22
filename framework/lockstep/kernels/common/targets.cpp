#include "lockstep/kernels/common/targets.h"

#include "lockstep/core/error.h"

namespace lockstep::kernels {
namespace {

constexpr std::int32_t kUsualIgnored = -100;  // needs no mention in an error

}  // namespace

void check_targets(TargetExtent size, std::int64_t classes, const std::int32_t* targets,
                   std::optional<std::int32_t> ignored, const TargetSource& source) {
  for (std::int64_t i = 0; i < size.samples * size.positions; ++i) {
    if ((targets[i] >= 0 && targets[i] < classes) || targets[i] == ignored) continue;
    const std::string path = source.path.empty() ? "" : source.path + ": ";
    const std::string what = source.field.empty() ? "the target" : formatted("'{}'", source.field);
    const std::string at = size.positions == 1 ? "" : formatted(" at position {}", i % size.positions);
    const std::string other = !ignored || *ignored == kUsualIgnored ? "" : formatted(" or {}", *ignored);
    throw SampleError(formatted("[{}] {}{} of ", source.op, path, what), i / size.positions,
                      formatted(" is {}{}, expected a class from 0 to {}{}", targets[i], at, classes - 1, other));
  }
}

}  // namespace lockstep::kernels
