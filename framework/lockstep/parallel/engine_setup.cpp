#include "lockstep/parallel/engine_setup.h"

#include <utility>

namespace lockstep::parallel {

bool updates_by_local_gradients(const EngineOptions& options) {
  return options.reduction.hook != nullptr && !options.reduction.hook->reduces();
}

GradientDecision::Options decision_options(const EngineOptions& options, const Updater& updater) {
  return {.clip_norm = options.clip_norm,
          .guard = options.guards.look_at_gradient(),
          .hold = options.guards.hold_gradient,
          .limits = options.guards.gradient,
          .noise = options.noise,
          .by_parameter = updater.clips_parameters() || updater.uses_norms()};
}

StepMemory::Size memory_size(const EngineOptions& options, const Updater& updater) {
  return {.control = StepSums::size(options.sums),
          .statistics = options.statistics,
          .squares = decision_options(options, updater).needs_squares(),
          .norms = updater.uses_norms(),
          .shard_sums = options.noise ? std::size_t{kNoiseSums} : 0};
}

std::vector<std::span<double>> noise_sums(const StepMemory& memory, const EngineOptions& options) {
  return options.noise ? memory.shard_sums() : std::vector<std::span<double>>{};
}

Ownership ownership(const NodeMemory& memory, const EngineOptions& options) {
  return {.by_owner = memory.shares() || memory.domains().local_size() == 1,
          .across_domains = options.shard_optimizer && memory.domains().count() > 1};
}

BucketReducer& with_buckets(BucketReducer& reducer, const StepMemory& memory, const plan::ParameterStore& store,
                            const Ownership& ownership, bool hooked) {
  reducer.add_bucket(memory.statistics_memory());
  for (std::size_t b = 0; b < store.buckets().size(); ++b) {
    BucketMemory bucket = memory.gradient_memory(b);
    bucket.everywhere = !ownership.by_owner;
    if (hooked) bucket.hooked = static_cast<int>(b);
    if (ownership.across_domains) bucket.values = store.buckets()[b].values;
    reducer.add_bucket(std::move(bucket));
  }
  if (!memory.squares().empty()) reducer.add_bucket(memory.squares_memory());
  if (!memory.norms().empty()) reducer.add_bucket(memory.norms_memory());
  return reducer;
}

std::vector<std::vector<MemoryChecksums::Part>> checked_parts(const OwnedParts& owned, std::size_t buckets) {
  std::vector<std::vector<MemoryChecksums::Part>> parts(buckets);
  for (std::size_t b = 0; b < buckets; ++b) {
    for (Range range : owned.updated(b)) parts[b].push_back({range, true});
    if (!owned.ownership().by_owner) continue;
    for (Range range : owned.received(b)) parts[b].push_back({range, false});
  }
  return parts;
}

MemoryGuardOptions guard_options(const NodeMemory& memory, const Ownership& ownership, const Updater& updater,
                                 const EngineOptions& options) {
  MemoryGuardOptions guard{.verify_every = options.guards.verify_every,
                           .compare_every = options.guards.compare_every,
                           .copies_have_states = !ownership.across_domains,
                           .replicas_differ = updates_by_local_gradients(options),
                           .state_names = updater.rule().states()};
  // Not by `by_owner`, which is true on a rank that is alone in its domain and false on others: ranks would count
  // copies differently, and one of them alone would find damage.
  const Domains& domains = memory.domains();
  for (int r = 0; r < domains.size(); ++r)
    guard.copy_of.push_back(memory.shares() ? domains.domain_of[static_cast<std::size_t>(r)] : r);
  return guard;
}

}  // namespace lockstep::parallel
