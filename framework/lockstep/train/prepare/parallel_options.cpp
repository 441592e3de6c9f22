#include "lockstep/train/prepare/parallel_options.h"

#include "lockstep/parallel/reduce/bucket_hook.h"

namespace lockstep::train {

std::shared_ptr<parallel::BucketHook> hook_of(const ParallelOptions& options) {
  if (options.hook) return options.hook;
  if (options.local_steps > 1) return std::make_shared<parallel::LocalHook>();
  if (options.topk > 0) return std::make_shared<parallel::TopKHook>(options.topk);
  if (options.path == ParallelOptions::Path::Mpi) return std::make_shared<parallel::MpiAllreduceHook>();
  return nullptr;
}

}  // namespace lockstep::train
