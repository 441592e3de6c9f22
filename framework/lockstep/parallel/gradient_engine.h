// The reduction and update of one training step: leaves go in one after the other; a bucket whose gradients are final
// leaves for the other ranks while backward goes on; whoever owns a part of its sum updates that part of the
// parameters, and the next forward pass waits for a bucket before it reads it first. Sums and batch statistics travel
// beside the gradients. Driven from between the plan's steps, or by a thread of its own. All ranks make the same calls
// in the same order, each for its own leaves, from one thread; throws Error where MPI or another rank fails.
#pragma once

#include <bit>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "lockstep/core/heartbeat.h"
#include "lockstep/parallel/control/ballot.h"
#include "lockstep/parallel/control/control_block.h"
#include "lockstep/parallel/guard/gradient_guard.h"
#include "lockstep/parallel/guard/seals.h"
#include "lockstep/parallel/node_memory.h"
#include "lockstep/parallel/reduce/bucket_reducer.h"
#include "lockstep/parallel/reduce/progress_thread.h"
#include "lockstep/parallel/update/updater.h"
#include "lockstep/plan/plan.h"

namespace lockstep {

// Sums of the control block: these, then the counts of the model function.
enum ControlSum : std::size_t { kLossSum, kWeightSum, kSampleSum, kFirstCount };
// Words of the control block. Of requests, every rank learns what any rank has set (train/run/requests.h).
enum ControlWord : std::size_t {
  kStepWord,
  kSamplesWord,
  kPositionWord,
  kRateWord,  // the learning rate's bits
  kDriverWord,
  kTimeWord,
  kRequestWord,
  kLossWord,    // this rank's sum of losses
  kDamageWord,  // 0, or what is damaged in this rank's memory
  kDigestWord,  // of what this rank writes, where copies are compared
  kOwnWord,     // of what every rank has for itself
  kControlWords
};

// What keeps a step from being applied; nothing does if all are 0. See docs/reliability.md.
struct EngineGuards {
  std::int64_t verify_every = 0;   // updates between looks at the seals of what this rank writes
  std::int64_t compare_every = 0;  // updates between comparisons of copies
  bool hold_loss = false;          // hold back a step whose loss is not finite
  bool hold_gradient = false;      // or whose gradient is not, or is past a limit
  GradientGuardOptions gradient = {};
  bool look_at_gradient() const { return hold_gradient || gradient.norm > 0 || gradient.spike > 0; }
};

// Damaged: memory is not what was written. The other two are of this step's samples or arithmetic.
enum class StepVerdict : std::uint8_t { Apply, Damaged, BadLoss, BadGradient };

// Something that was found wrong in a rank's memory.
struct MemoryDamage {
  int rank;
  std::string what;
  int source = -1;  // a rank that has it right; -1: nobody is known to
};

struct EngineOptions {
  std::size_t statistics = 0, counts = 0;  // doubles per leaf (batch statistics), and counts, added up beside
  double clip_norm = 0;                    // largest norm of the whole mean gradient; 0: any
  bool shard_optimizer = false;            // a part of the parameters is updated by one rank of the job alone
  bool thread = false;                     // a thread drives communication: needs MPI_THREAD_MULTIPLE
  bool late_updates = false;               // see defers()
  int local_steps = 1;                     // steps between averages of weights, with a hook that does not reduce
  ReducerOptions reduction = {};
  Heartbeat* heartbeat = nullptr;  // tells a watchdog how far this rank is; null: nobody
  EngineGuards guards = {};
};

// Where in the data set a step begins, in one word: a sample of an epoch, both from 0.
constexpr std::uint64_t position_word(std::int64_t epoch, std::int64_t sample) {
  return static_cast<std::uint64_t>(epoch) << 40 | static_cast<std::uint64_t>(sample);
}

// What is the same for all ranks in a step, but for `requests`.
struct StepStart {
  std::uint64_t samples = 0, position = 0;  // position: see position_word()
  std::uint64_t driver = 0;                 // rank 0's word about who drives, which all ranks read
  std::uint64_t requests = 0;               // of this rank
  double learning_rate = 0;
  std::int64_t update = 1;  // its number, from 1
};

class GradientEngine : public PlanHooks {
 public:
  // `memory` is what the store's buckets lie in. All that is passed by reference outlives the engine.
  GradientEngine(const comm::Communicator& comm, const WorldLayout& world, NodeMemory& memory, ParameterStore& store,
                 Updater& updater, const EngineOptions& options);
  ~GradientEngine() override;

  void begin_step(const StepStart& start);

  // The current leaf: where its gradients go, and its sums and statistics, zero at first.
  int slot() const { return walk_.slot(); }
  std::span<double> leaf_sums() { return control_->leaf(); }
  std::span<double> leaf_statistics() { return statistics_[static_cast<std::size_t>(slot())]; }
  void sums_ready();      // the leaf's sums and statistics are complete
  void zero_gradients();  // of a leaf without samples
  void end_leaf();
  // The hooks of a run of the leaf's last plan; retired() comes after sums_ready().
  void needs(int bucket) override;
  void retired(const Parameter* parameter) override;
  void poll() override;
  bool late() const { return updated_ < updates_.size(); }  // whether updates of the last step are due
  // Drives on what other ranks may wait for; whoever waits for messages of all ranks calls it meanwhile. Throws Error
  // if a rank of the node has failed, or left some seconds ago.
  void progress();

  // After the last leaf: waits for the other ranks and does this rank's part of the update, unless no rank had a
  // sample. sums() and statistics() are then global. With late_updates buckets may still be on their way between
  // domains: they are updated by needs() or poll() in the next forward pass. Values may be read bucket by bucket after
  // needs(), all of them after settle(); fence() is collective and also waits for what a rank of the node wrote by
  // itself.
  void finish_step();
  // Who drives communication from the next step on. Alike on all ranks; between steps.
  void drive_by_thread(bool thread);
  bool is_driven_by_thread() const { return thread_ != nullptr; }
  void settle();
  void fence();
  // Returns when all ranks of the job are here, so that an MPI collective after it waits for no rank. Collective;
  // throws as progress() does.
  void meet();
  // With a hook that does not reduce: ranks' weights and optimizer states become their mean, as after every
  // `local_steps` updates (Yu, Jin and Yang, ICML 2019, average the momentum too). Collective.
  void average_replicas();
  std::span<const double> sums() const { return control_->sums(); }
  std::span<const double> statistics() const { return statistics_[0]; }
  std::uint64_t requests() const { return control_->any(kRequestWord); }  // of any rank, in the last step
  std::uint64_t root_driver() const { return control_->word(0, kDriverWord); }
  double gradient_norm() const { return gradient_norm_; }  // of the last step, before clipping; with clip_norm

  // Collective: slot 0 of every bucket becomes the whole sum of the last step, on every rank.
  void collect_gradients();
  // Collective, with shard_optimizer: the root's optimizer state becomes whole; the other way round, what a rank does
  // not own is dropped.
  void collect_states();
  void drop_foreign_states();

  // Called between reduction and update, which then begins after the last bucket has come: returns a factor for the
  // gradient. Slot 0 holds sums over samples (of all weights in sums()) of what this rank owns.
  void before_update(std::function<double()> inspect) { inspect_ = std::move(inspect); }

  // Of the last step, alike on all ranks: whether updates were applied. A step that was not left values, states and
  // means as they were, and can be run again.
  StepVerdict verdict() const { return verdict_; }
  const GradientFinding& gradient_finding() const { return finding_; }
  double loss_of(int rank) const { return std::bit_cast<double>(control_->word(rank, kLossWord)); }
  GradientGuard* gradient_guard() { return guard_.get(); }  // null if nobody asked for one

  // Between steps; all collective. What of all ranks' memory is damaged, by its seals and by comparison of copies;
  // where a rank has it right, it gets there if `repair`. After it (or a load) nothing counts as damaged.
  std::vector<MemoryDamage> examine(bool repair);
  bool intact();  // whether all ranks' seals fit now
  // What this rank has for itself (running statistics) was moved on after the step.
  void own_values_moved() { sealed_version_ = sealed_version_ > 0 ? store_.version() : 0; }

  // For the other ranks of the node: do not wait for this one, which has failed.
  void fail();
  // The same at the end: this rank makes no more calls. Updates that are due are made first. The destructor leaves too;
  // an owner that destroys more, for which other ranks may wait, calls leave() first.
  void leave();
  std::size_t bytes() const;  // of memory that is not the store's
  const BucketReducer& reducer() const { return *reducer_; }
  void note_in(Trace* trace);  // between steps; null: nowhere

  // Of the last step. A rank's compute time ends when it has the sums of its last forward pass.
  struct StepTimes {
    double compute = 0, waiting = 0;  // seconds of this rank: to its last gradient, and after that
    double earlier = 0;               // of waiting for the step before, in this one's forward pass
    int slowest = 0;                  // the rank whose forward pass ended last, counted from its begin
    double slowest_lead = 0;          // seconds by which it was slower than the fastest
    BucketReducer::Traffic traffic;   // of the gradients
  };
  const StepTimes& times() const { return times_; }

 private:
  struct Placement;
  struct Shown;
  void make_channels(const Shown& shown, const ControlSize& size);
  BucketMemory doubles(const Shown& shown, std::size_t Placement::*part, std::size_t bytes) const;
  void add_gradients();
  bool drive();
  bool advance();
  void check_same_rate() const;
  void check_same_position() const;
  bool sums_arrived();
  bool decide();
  bool update_buckets();
  bool update_bucket(std::size_t bucket);
  void join(int bucket);
  void start_in_order(int bucket);
  void begin_leaf();
  void open_updates();
  bool defers() const;
  bool ready(int bucket) const;
  bool keeps_gradients_local() const {
    return options_.reduction.hook != nullptr && !options_.reduction.hook->reduces();
  }
  void check_nobody_left();
  void make_guards();
  bool verifies() const { return due(options_.guards.verify_every); }
  bool compares() const { return !keeps_gradients_local() && due(options_.guards.compare_every); }
  bool due(std::int64_t every, std::int64_t ahead = 0) const {
    return every > 0 && (update_.count + ahead) % every == 0;
  }
  void look_at_memory();
  void judge();
  void judge_gradient();
  bool copies_differ() const;
  void note_seals();
  void verify_before_update(std::size_t bucket, std::span<const Range> ranges);
  void seal(std::size_t bucket, std::span<const Range> ranges);
  void inject_flips() const;
  struct DamagedBlock {
    std::int64_t block;
    BallotResult result;
  };
  std::vector<DamagedBlock> compare_blocks();
  void restore(std::int64_t block, const BallotResult& result);
  bool applies() const { return has_samples_ && verdict_ == StepVerdict::Apply; }
  void take_times(Trace::Clock::time_point since);
  bool shards_optimizer() const { return options_.shard_optimizer && memory_.domains().count() > 1; }
  std::byte* gradient_of(std::size_t bucket, int local_rank) const;
  template <class Visit>
  void visit_states(const Visit& visit);
  int reduction_of(std::size_t bucket) const { return static_cast<int>(bucket) + 1; }  // 0 are the statistics
  template <class Done>
  void wait_until(const Done& done);

  comm::Communicator gradient_comm_, control_comm_;
  WorldLayout world_;
  LeafWalk walk_;
  NodeMemory& memory_;
  ParameterStore& store_;
  Updater& updater_;
  EngineOptions options_;
  bool owners_update_;                           // else everybody updates everything
  std::vector<std::span<std::byte>> gradients_;  // all slots of all buckets, by local rank
  std::vector<std::span<double>> statistics_;    // by slot
  std::span<double> squares_;                    // by block of all buckets
  std::span<std::byte> squares_memory_;          // of all slots
  std::unique_ptr<SharedFlags> gradient_flags_, control_flags_;
  std::unique_ptr<BucketReducer> reducer_;
  std::unique_ptr<ControlBlock> control_;
  CommTransport gradient_transport_, control_transport_;  // go before what they receive into
  std::size_t own_bytes_ = 0;
  int squares_bucket_ = -1;
  std::function<double()> inspect_;

  Heartbeat own_heartbeat_;  // that nobody reads
  Heartbeat& heartbeat_;
  StepTimes times_;
  Trace::Clock::time_point begun_;
  BucketReducer::Traffic traffic_before_;
  Trace* trace_ = nullptr;

  UpdateStep next_update_, update_;  // of the step that has begun; of the one whose buckets are reduced
  bool has_samples_ = false;         // that one
  bool replicas_differ_ = false;     // updated by each rank for itself since the last average
  double local_weight_ = 0;          // of this rank's samples in the step
  bool posted_ = false;              // the control block of this step; until it is finished
  bool sums_known_ = false, squares_started_ = false, decided_ = false;
  double gradient_norm_ = 0;

  std::unique_ptr<Seals> seals_;
  std::unique_ptr<GradientGuard> guard_;
  GradientFinding finding_;
  StepVerdict verdict_ = StepVerdict::Apply;
  std::uint64_t sealed_version_ = 0;  // of the values that the seals are of; 0: of none
  std::uint64_t late_damage_ = 0;     // found when it was too late for this step: what the next one tells
  double local_loss_ = 0;
  enum class Update : std::uint8_t { Due, ValuesSent, Done };
  std::vector<Update> updates_;                                      // by bucket
  std::size_t updated_ = 0;                                          // buckets
  bool left_ = false;                                                // leave() was called
  std::int64_t made_ = 0;                                            // number of the last update that this engine made
  std::optional<std::chrono::steady_clock::time_point> left_since_;  // another rank, seen in progress()
  std::int64_t looks_since_ = 0;
  std::vector<int> awaited_;                // by bucket: gradients of this leaf that are not final
  std::vector<bool> complete_;              // by bucket: joined for the last leaf
  std::size_t next_ = 0;                    // bucket to be started
  std::unique_ptr<ProgressThread> thread_;  // last: it drives what is above
};

}  // namespace lockstep
