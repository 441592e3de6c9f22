// Evaluates a model on all ranks together: sums the loss and metrics over the samples of the ranks' loaders.
// Collective; one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/data/loader.h"
#include "lockstep/parallel/control/message_control.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/runner/batch_feed.h"
#include "lockstep/train/runner/totals.h"
#include "lockstep/train/step/ranked_pairs.h"
#include "lockstep/train/step/step_votes.h"

namespace lockstep::train {

class Evaluator {
 public:
  // All arguments must outlive this object. The constructor sums zeros once: MPI allocates memory for the first
  // messages, and a memory forecast must include it.
  Evaluator(PreparedModel& prepared, parallel::GradientEngine& engine, BatchFeed& feed, StepVotes& votes,
            const std::function<void()>& meanwhile);

  // Evaluates the rest of the loader's epoch; calls `progress` after each batch with the number of samples that all
  // ranks have reached. A rank stops early after a request that ends evaluations. May throw Error on this rank alone.
  Totals run(data::Loader& loader, const std::function<void(std::int64_t)>& progress);
  // Explains the totals of the last run() if their loss is not finite: all ranks throw an AgreedError with the first
  // sample and field that are not finite, or warn, if the samples are finite or the guards only log.
  void explain(const Totals& totals) const;

 private:
  // The first sample on this rank whose inputs are not finite, in batches after which the sum of losses is not finite.
  struct BadSample {
    std::int64_t position = std::numeric_limits<std::int64_t>::max();  // in the evaluation; the largest: there is none
    std::string text{};
  };
  using Sums = std::vector<std::vector<double>>;  // by shard of this rank
  void add_batch(const data::Batch& batch, const data::Dataset& dataset, Sums& sums, RankedPairs& pairs);
  void find_bad_sample(const data::Batch& batch, Range rows, const data::Dataset& dataset);
  void add_up(const Sums& sums, std::uint64_t requests);
  Sums no_sums() const;

  PreparedModel& prepared_;
  parallel::GradientEngine* engine_;
  BatchFeed& feed_;
  StepVotes& votes_;
  parallel::MessageControl control_;
  BadSample bad_;
};

}  // namespace lockstep::train
