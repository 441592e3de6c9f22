// Makes the settings of the parts of a GradientEngine from its options, its memory and its ranks. Internal to the
// engine.
#pragma once

#include <span>
#include <vector>

#include "lockstep/parallel/gradient_engine.h"

namespace lockstep::parallel {

// Whether each rank updates its own weights by its own gradient.
bool updates_by_local_gradients(const EngineOptions& options);
GradientDecision::Options decision_options(const EngineOptions& options, const Updater& updater);
StepMemory::Size memory_size(const EngineOptions& options, const Updater& updater);
// Returns the sums over shards for the noise scale, by slot; those of the first slot are global once they are reduced.
std::vector<std::span<double>> noise_sums(const StepMemory& memory, const EngineOptions& options);
Ownership ownership(const NodeMemory& memory, const EngineOptions& options);
// Adds the buckets of a step in the order of reduction_of().
BucketReducer& with_buckets(BucketReducer& reducer, const StepMemory& memory, const plan::ParameterStore& store,
                            const Ownership& ownership, bool hooked);
// Returns, by bucket, the parts whose checksums this rank keeps.
std::vector<std::vector<MemoryChecksums::Part>> checked_parts(const OwnedParts& owned, std::size_t buckets);
// The result is alike on all ranks.
MemoryGuardOptions guard_options(const NodeMemory& memory, const Ownership& ownership, const Updater& updater,
                                 const EngineOptions& options);

}  // namespace lockstep::parallel
