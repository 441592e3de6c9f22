// The reduction of one training step: leaves go in one after the other, gradients of a bucket are joined as soon as
// they are final and leave for the other ranks while backward goes on, sums and batch statistics travel with them.
// Drives itself from the executor's calls. One thread; all ranks make the same calls in the same order, each for its
// own leaves.
#pragma once

#include <memory>

#include "lockstep/parallel/bucket_reducer.h"
#include "lockstep/parallel/control_block.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep {

// Sums of the control block: these, then the counts of the model function.
enum ControlSum : std::size_t { kLossSum, kWeightSum, kSampleSum, kFirstCount };
// Words of the control block, equal on all ranks that agree on what they do.
enum ControlWord : std::size_t { kStepWord, kSamplesWord, kPositionWord, kControlWords };

class GradientEngine {
 public:
  // `statistics` doubles per leaf (batch statistics) and `counts` are added up beside the gradients.
  GradientEngine(const comm::Communicator& comm, const WorldLayout& world, ParameterStore& store,
                 std::size_t statistics, std::size_t counts);

  void begin_step(std::uint64_t step, std::uint64_t samples, std::uint64_t position);

  // The current leaf: where its gradients go, and its sums and statistics, zero at first.
  int slot() const { return walk_.slot(); }
  std::span<double> leaf_sums() { return control_.leaf(); }
  std::span<double> leaf_statistics() { return statistics_[static_cast<std::size_t>(slot())]; }
  void sums_ready();                                // the leaf's sums and statistics are complete
  void gradient_ready(const Parameter* parameter);  // final for this leaf
  void zero_gradients();                            // of a leaf without samples
  void end_leaf();

  // After the last leaf: waits for the other ranks. Slot 0 of every bucket, sums() and statistics() are then global.
  void finish_step();
  std::span<const double> sums() const { return control_.sums(); }
  std::span<const double> statistics() const { return {statistics_[0].data(), statistics_count_}; }
  void progress();
  std::size_t bytes() const { return reducer_.bytes(); }  // for messages

 private:
  void join(int bucket);
  void start_in_order(int bucket);
  void begin_leaf();

  comm::Communicator gradient_comm_, control_comm_;
  LeafWalk walk_;
  ParameterStore& store_;
  // Before what receives into them, so that they are freed after it.
  std::size_t statistics_count_;
  std::vector<std::vector<double>> statistics_;  // by slot
  BucketReducer reducer_;
  ControlBlock control_;
  int statistics_bucket_ = -1;
  std::vector<int> awaited_;    // by bucket: gradients of this leaf that are not final
  std::vector<bool> complete_;  // by bucket: joined for the last leaf
  std::size_t next_ = 0;        // bucket to be started
};

}  // namespace lockstep
