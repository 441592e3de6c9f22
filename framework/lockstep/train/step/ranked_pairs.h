// The pairs of score and label that an evaluation collects for metrics such as AUC (graph/metric.h), and their merging
// over all ranks. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/heartbeat.h"
#include "lockstep/plan/plan.h"

namespace lockstep::train {

// Calls `fold` on rank 0 with the pairs of all ranks in order, and returns its result on all ranks. Ranks sort their
// pairs; rank 0 merges, and has at most about `buffered` pairs of other ranks at a time. The order, and so the result,
// does not depend on the number of ranks. `heartbeat` beats while this rank sorts or merges, and waits while it sends
// or receives. Collective; throws AgreedError if `fold` throws, and if rank 0 has no memory for these pairs.
double fold_in_order(const comm::Communicator& comm, Heartbeat& heartbeat, std::vector<ScoredPair> mine,
                     const std::function<double(const NextPair& next)>& fold,
                     std::int64_t buffered = std::int64_t{1} << 22);

class RankedPairs {
 public:
  explicit RankedPairs(std::span<const plan::PlanMetric> metrics);

  // Takes the pairs of a plan that has run.
  void add(const plan::Plan& plan);
  // Returns the results of the lists, metric by metric; no numbers for a metric without pairs. Collective.
  std::vector<std::vector<double>> finish(const comm::Communicator& comm, Heartbeat& heartbeat);

 private:
  std::vector<plan::PlanMetric> metrics_;
  std::vector<std::vector<std::vector<ScoredPair>>> pairs_;  // by metric and list
};

}  // namespace lockstep::train
