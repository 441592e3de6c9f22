// Evaluates a model on all ranks together: sums over the samples that a loader gives each of them. Collective; one
// thread.
#pragma once

#include <functional>
#include <vector>

#include "lockstep/data/loader.h"
#include "lockstep/parallel/control/message_control.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/batch_feed.h"
#include "lockstep/train/step/step_votes.h"
#include "lockstep/train/step/totals.h"

namespace lockstep::train {

class Evaluator {
 public:
  // All outlive this. Adds up nothing once: MPI takes memory at the first messages, which is seen before a forecast
  // then.
  Evaluator(PreparedModel& prepared, parallel::GradientEngine& engine, BatchFeed& feed, StepVotes& votes,
            const std::function<void()>& meanwhile);

  // The rest of the loader's epoch; `progress` is told after each batch how many samples all ranks have reached. A rank
  // leaves early for a request that ends evaluations. Throws Error of this rank alone too.
  Totals run(data::Loader& loader, const std::function<void(std::int64_t)>& progress);

 private:
  using Sums = std::vector<std::vector<double>>;  // by shard of this rank
  void add_batch(const data::Batch& batch, Sums& sums);
  void add_up(const Sums& sums, std::uint64_t requests);
  Sums no_sums() const;

  PreparedModel& prepared_;
  parallel::GradientEngine* engine_;
  BatchFeed& feed_;
  StepVotes& votes_;
  parallel::MessageControl control_;
};

}  // namespace lockstep::train
