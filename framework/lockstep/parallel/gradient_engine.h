// The reduction and update of one training step. Shards run one after the other. A bucket whose gradients are final is
// sent to the other ranks while backward continues; the owner of a part of its sum updates that part of the parameters;
// the next forward pass waits for a bucket before it first reads the bucket. Sums and batch statistics travel beside
// the gradients. Communication is driven between the steps of the plan, or by a thread of the engine. All ranks make
// the same calls in the same order, each for its own shards, from one thread. Calls throw Error where MPI or another
// rank fails. The engine is a composition: each part does one of these jobs and has a header and a test of its own.
#pragma once

#include <functional>
#include <optional>

#include "lockstep/core/heartbeat.h"
#include "lockstep/parallel/control/step_sums.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/guard/memory_guard.h"
#include "lockstep/parallel/reduce/progress_driver.h"
#include "lockstep/parallel/reduce/reduction_scheduler.h"
#include "lockstep/parallel/step/step_channels.h"
#include "lockstep/parallel/step/step_memory.h"
#include "lockstep/parallel/step/step_timer.h"
#include "lockstep/parallel/update/owned_parts.h"
#include "lockstep/parallel/update/replica_average.h"
#include "lockstep/parallel/update/step_update.h"
#include "lockstep/parallel/update/update_gate.h"
#include "lockstep/plan/plan.h"

namespace lockstep::parallel {

// Conditions under which a step is not applied; with all at 0 every step is. See docs/reliability.md.
struct EngineGuards {
  std::int64_t verify_every = 0;   // updates between two verifications of the checksums of this rank's parts
  std::int64_t compare_every = 0;  // updates between two comparisons of copies
  bool hold_loss = false;          // hold back a step whose loss is not finite
  bool hold_gradient = false;      // hold back a step whose gradient is not finite or exceeds a limit
  GradientGuardOptions gradient = {};
  bool look_at_gradient() const { return hold_gradient || gradient.norm > 0 || gradient.spike > 0; }
};

struct EngineOptions {
  std::size_t statistics = 0,
              sums = 0;          // doubles per shard that are summed over ranks: batch statistics, and other sums
  double clip_norm = 0;          // largest norm of the mean gradient, all parameters together; 0: no limit
  bool noise = false;            // estimate the noise of the gradient in every step
  bool shard_optimizer = false;  // each part of the parameters is updated by one rank of the whole job
  bool thread = false;           // a thread drives communication: needs MPI_THREAD_MULTIPLE
  bool late_updates = false;     // see finish_step()
  int local_steps = 1;           // steps between two averages of weights, with a hook that does not reduce
  ReducerOptions reduction = {};
  Heartbeat* heartbeat = nullptr;  // shows the progress of this rank to a watchdog; null: no watchdog
  BetweenSteps between = {};       // how errors describe the words of agree()
  EngineGuards guards = {};
};

class GradientEngine : public plan::PlanHooks {
 public:
  // The buckets of `store` lie in `memory`. All references outlive the engine. Collective.
  GradientEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory,
                 plan::ParameterStore& store, Updater& updater, const EngineOptions& options);
  // Calls leave(). An owner that destroys other parts before the engine, for which other ranks may wait, calls leave()
  // itself first.
  ~GradientEngine() override;

  // --- a step
  void begin_step(const StepStart& start);
  // The current shard: the slot of its gradients, and its sums and statistics, which begin at zero.
  int slot() const { return reductions_.slot(); }
  std::span<double> shard_sums() { return sums_.shard(); }
  std::span<double> shard_statistics() { return reductions_.statistics(); }
  void sums_ready();      // the shard's sums and statistics are complete
  void zero_gradients();  // for a shard without samples
  void end_shard() { reductions_.end_shard(); }
  // The hooks of a run of the shard's last plan; the plan calls retired() after sums_ready().
  void needs(int bucket) override { gate_.pass(bucket); }
  void retired(const Parameter* parameter) override;
  void poll() override;
  // After the last shard: waits for the other ranks and does this rank's part of the update, unless no rank had a
  // sample. sums() and statistics() are then global. With late_updates some buckets may still be in flight between
  // domains; needs() or poll() updates them in the next forward pass. A bucket's values may be read after needs(), all
  // values after settle(). fence() is collective and also waits for values that one rank of the node wrote alone.
  void finish_step();
  // `inspect` is called between reduction and update, which then begins after the last bucket has arrived, and returns
  // a factor for the gradient. Slot 0 holds, in the parts that this rank owns, sums over samples whose total weight is
  // in sums(). It may call collect_gradients(), then on all ranks.
  void before_update(std::function<double()> inspect) { update_.decision().inspect_by(std::move(inspect)); }
  bool late() const { return update_.buckets().late(); }  // whether updates of the last step are due

  // Gradients beside those in buckets, rows of sparse tables, which outlive the engine's steps. Before the first step.
  void attach(FurtherGradients& further) { update_.attach(further); }

  // --- results of the last step, alike on all ranks
  std::span<const double> sums() const { return sums_.sums(); }
  std::span<const double> statistics() const { return reductions_.sums_of_statistics(); }
  std::uint64_t requests() const { return sums_.requests(); }  // of any rank
  std::uint64_t root_driver() const { return sums_.root_driver(); }
  double gradient_norm() const { return update_.decision().norm(); }  // before clipping; 0 without clip_norm or a guard
  // Whether updates were applied. A step that was not applied has not changed values, states and means, and can be run
  // again.
  StepVerdict verdict() const { return update_.state().verdict; }
  const std::optional<NoiseEstimate>& gradient_noise() const { return update_.decision().noise(); }  // empty without it
  const GradientFinding& gradient_finding() const { return update_.decision().finding(); }
  double loss_of(int rank) const { return sums_.loss_of(rank); }
  const StepTimes& times() const { return timer_.times(); }  // of this rank

  // --- between steps
  // Drives communication for which other ranks may wait. A caller that waits for messages of all ranks calls it while
  // it waits. Throws Error if a rank of the node has failed, or left some seconds ago.
  void progress();
  // Sets whether a thread of the engine drives communication from the next step on. Alike on all ranks.
  void drive_by_thread(bool thread);
  bool is_driven_by_thread() const { return driver_.has_thread(); }
  void settle();
  void fence();
  // Returns when all ranks of the job are here, so that an MPI collective after it waits for no rank. Collective;
  // throws as progress() does.
  void meet();
  // Returns when all ranks are here with the same `word`, which is not 0: they then make the same calls until the next
  // step. Throws Error on all ranks if the words differ, or if another rank is in a step already. Collective.
  void agree(std::uint64_t word);
  void average_replicas();  // collective: see ReplicaAverage; nothing without local steps
  // Collective: slot 0 of every bucket becomes the whole sum of the last step, on every rank.
  void collect_gradients();
  // With shard_optimizer: makes the root's optimizer state whole (collective); drops the state that this rank does not
  // own.
  void collect_states();
  void drop_foreign_states() { owned_.drop_foreign_states(); }
  // Both collective: see MemoryGuard::examine(); and whether the memory of all ranks has its recorded checksums.
  std::vector<MemoryDamage> examine(bool repair);
  bool intact();
  // Of the average of the weights (optim/average.h), if the rule has one. Both collective: see AverageExchange. The
  // average goes into the place of the weights (`away`) and back; then, when all else that was changed for the time
  // between is as it was, values_are_back() says so.
  void add_to_average(double weight);
  void swap_average(bool away);
  void values_are_back() { guard_.end_detour(); }
  void own_values_moved() { guard_.own_values_moved(); }  // this rank's running statistics moved after the step
  GradientGuard* gradient_guard() { return update_.decision().guard(); }  // null unless one is asked for
  void note_in(Trace* trace);                                             // null: nowhere

  // Tells the other ranks of the node not to wait for this rank, because it has failed; or because it makes no more
  // calls, in which case leave() first does its late updates.
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
