#include "lockstep/train/step/parallel_options.h"

namespace lockstep::train {

std::shared_ptr<BucketHook> hook_of(const ParallelOptions& options) {
  if (options.hook) return options.hook;
  if (options.local_steps > 1) return std::make_shared<LocalHook>();
  if (options.topk > 0) return std::make_shared<TopKHook>(options.topk);
  if (options.path == ParallelOptions::Path::Mpi) return std::make_shared<MpiAllreduceHook>();
  return nullptr;
}

}  // namespace lockstep::train
