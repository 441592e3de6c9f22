// The reduction and update of one training step: shards go in one after the other; a bucket whose gradients are final
// leaves for the other ranks while backward goes on; the owner of a part of its sum updates that part of the
// parameters, and the next forward pass waits for a bucket before it reads it first. Sums and batch statistics travel
// beside the gradients. Driven from between the plan's steps, or by a thread of its own. All ranks make the same calls
// in the same order, each for its own shards, from one thread; throws Error where MPI or another rank fails.
// A composition: each part does one of these jobs and has a header and a test of its own.
#pragma once

#include <functional>
#include <optional>

#include "lockstep/core/heartbeat.h"
#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/guard/memory_guard.h"
#include "lockstep/parallel/node_memory.h"
#include "lockstep/parallel/reduce/progress_driver.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/step_channels.h"
#include "lockstep/parallel/step_memory.h"
#include "lockstep/parallel/step_timer.h"
#include "lockstep/parallel/step_update.h"
#include "lockstep/parallel/update/owned_parts.h"
#include "lockstep/parallel/update/replica_average.h"
#include "lockstep/parallel/update/update_gate.h"
#include "lockstep/plan/plan.h"

namespace lockstep::parallel {

// What keeps a step from being applied; nothing does if all are 0. See docs/reliability.md.
struct EngineGuards {
  std::int64_t verify_every = 0;   // updates between looks at the checksums of what this rank writes
  std::int64_t compare_every = 0;  // updates between comparisons of copies
  bool hold_loss = false;          // hold back a step whose loss is not finite
  bool hold_gradient = false;      // or whose gradient is not, or is past a limit
  GradientGuardOptions gradient = {};
  bool look_at_gradient() const { return hold_gradient || gradient.norm > 0 || gradient.spike > 0; }
};

struct EngineOptions {
  std::size_t statistics = 0, counts = 0;  // doubles for each shard (batch statistics), and counts, added up beside
  double clip_norm = 0;                    // largest norm of the whole mean gradient; 0: any
  bool shard_optimizer = false;            // a part of the parameters is updated by one rank of the job alone
  bool thread = false;                     // a thread drives communication: needs MPI_THREAD_MULTIPLE
  bool late_updates = false;               // see finish_step()
  int local_steps = 1;                     // steps between averages of weights, with a hook that does not reduce
  ReducerOptions reduction = {};
  Heartbeat* heartbeat = nullptr;  // tells a watchdog how far this rank is; null: none is told
  EngineGuards guards = {};
};

class GradientEngine : public plan::PlanHooks {
 public:
  using StepTimes = StepTimer::Times;

  // The store's buckets lie in `memory`. All that is passed by reference outlives the engine.
  GradientEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory,
                 plan::ParameterStore& store, Updater& updater, const EngineOptions& options);
  // Leaves; an owner that destroys more, for which other ranks may wait, calls leave() first.
  ~GradientEngine() override;

  // --- a step
  void begin_step(const StepStart& start);
  // The current shard: the slot of its gradients, and its sums and statistics, zero at first.
  int slot() const { return reductions_.slot(); }
  std::span<double> shard_sums() { return sums_.shard(); }
  std::span<double> shard_statistics() { return reductions_.statistics(); }
  void sums_ready();      // the shard's sums and statistics are complete
  void zero_gradients();  // of a shard without samples
  void end_shard() { reductions_.end_shard(); }
  // The hooks of a run of the shard's last plan; retired() comes after sums_ready().
  void needs(int bucket) override { gate_.pass(bucket); }
  void retired(const Parameter* parameter) override;
  void poll() override;
  // After the last shard: waits for the other ranks and does this rank's part of the update, unless no rank had a
  // sample. sums() and statistics() are then global. With late_updates buckets may still be on their way between
  // domains: they are updated by needs() or poll() in the next forward pass. Values may be read bucket by bucket after
  // needs(), all of them after settle(); fence() is collective and also waits for what a rank of the node wrote by
  // itself.
  void finish_step();
  // Called between reduction and update, which then begins after the last bucket has come: returns a factor for the
  // gradient. Slot 0 holds sums over samples (of all weights in sums()) in the parts that this rank owns.
  void before_update(std::function<double()> inspect) { update_.decision().inspect_by(std::move(inspect)); }
  bool late() const { return update_.buckets().late(); }  // whether updates of the last step are due

  // --- of the last step, alike on all ranks
  std::span<const double> sums() const { return sums_.sums(); }
  std::span<const double> statistics() const { return reductions_.sums_of_statistics(); }
  std::uint64_t requests() const { return sums_.requests(); }  // of any rank
  std::uint64_t root_driver() const { return sums_.root_driver(); }
  double gradient_norm() const { return update_.decision().norm(); }  // before clipping; with clip_norm
  // Whether updates were applied. A step that was not applied left values, states and means as they were, and can be
  // run again.
  StepVerdict verdict() const { return update_.state().verdict; }
  const GradientFinding& gradient_finding() const { return update_.decision().finding(); }
  double loss_of(int rank) const { return sums_.loss_of(rank); }
  const StepTimes& times() const { return timer_.times(); }  // of this rank

  // --- between steps
  // Drives what other ranks may wait for; a caller that waits for messages of all ranks calls it meanwhile. Throws
  // Error if a rank of the node has failed, or left some seconds ago.
  void progress();
  // By which thread communication is driven from the next step on. Alike on all ranks.
  void drive_by_thread(bool thread);
  bool is_driven_by_thread() const { return driver_.has_thread(); }
  void settle();
  void fence();
  // Returns when all ranks of the job are here, so that an MPI collective after it waits for no rank. Collective;
  // throws as progress() does.
  void meet();
  void average_replicas();  // collective: see ReplicaAverage; nothing without local steps
  // Collective: slot 0 of every bucket becomes the whole sum of the last step, on every rank.
  void collect_gradients();
  // Collective, with shard_optimizer: the root's optimizer state becomes whole; or this rank drops the state that it
  // does not own.
  void collect_states();
  void drop_foreign_states() { owned_.drop_foreign_states(); }
  // Both collective: see MemoryGuard::examine(), and whether all ranks' memory has its checksums now.
  std::vector<MemoryDamage> examine(bool repair);
  bool intact();
  void own_values_moved() { guard_.own_values_moved(); }  // this rank's running statistics moved after the step
  GradientGuard* gradient_guard() { return update_.decision().guard(); }  // null unless one is asked for
  void note_in(Trace* trace);                                             // null: nowhere

  // For the other ranks of the node: do not wait for this one, which has failed; or which makes no more calls, after
  // its late updates.
  void fail() { channels_.fail(); }
  void leave();
  std::size_t bytes() const { return memory_.bytes() + reducer_.bytes(); }  // of memory that is not the store's
  const BucketReducer& reducer() const { return reducer_; }

 private:
  const comm::Communicator& gradient_comm() { return channels_.gradients().comm; }

  StepMemory memory_;
  StepChannels channels_;
  StepSums sums_;
  BucketReducer reducer_;
  OwnedParts owned_;
  MemoryGuard guard_;
  ReductionScheduler reductions_;
  ReplicaAverage average_;
  ProgressDriver driver_;
  StepUpdate update_;
  StepTimer timer_;
  UpdateGate gate_;
};

}  // namespace lockstep::parallel
