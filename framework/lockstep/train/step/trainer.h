// One data-parallel training step, and what surrounds it: forward, loss, backward, reduction over all ranks, update.
// Needs a communicator and a model, no command line and no files, so it fits into a caller's own program. All ranks
// construct it and call it alike; one thread. After an Error of a step or an evaluation, also of one that refuses its
// batch or rate, the ranks are out of step: the communicator is poisoned, and ranks of the node that wait for this one
// throw PeerError, so end the job, as train::guard_main() does (train/run/guard_main.h). An AgreedError changes
// nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/data/batch.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/stream.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/nn/module.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/parallel/exchange/tree_collective.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/parallel/update/updater.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/report/step_profile.h"
#include "lockstep/train/report/tensor_hash.h"
#include "lockstep/train/step/overlap_trial.h"
#include "lockstep/train/step/totals.h"
#include "lockstep/train/step/trainer_options.h"

namespace lockstep::train {

// How a data set is walked by all ranks together.
struct SamplingOptions {
  bool shuffle = true;                                // false: in order, for evaluation
  data::Remainder remainder = data::Remainder::Keep;  // of an epoch's samples that fill no global batch
  std::int64_t global_batch = 0;                      // samples per step over all ranks; 0: the trainer's
};

class Trainer {
 public:
  // `fields` are a batch's. Compiles the nominal plan, and broadcasts rank 0's weights.
  Trainer(const comm::Communicator& comm, const nn::Module& module, const ModelFunction& model,
          std::vector<data::Field> fields, TrainerOptions options);
  ~Trainer();

  // Trains one global batch, of which `batch` holds this rank's part (maybe none of it), at this learning rate. The
  // totals are valid until the next step.
  const Totals& step(const data::Batch& batch, double learning_rate);
  // Throws AgreedError, as step() does then, unless a batch of so many samples over all ranks can be trained: every
  // part of it gives a batch norm none or at least two values per channel. No communication.
  void check_batch(std::int64_t samples) const;
  // For streams: each rank trains what it has, an ended stream nothing. No sample on any rank: nothing happens, samples
  // is 0.
  const Totals& step(const std::optional<data::Batch>& streamed, double learning_rate);
  // The rest of the loader's epoch, which is then complete; running statistics instead of the batch's. `progress` is
  // told after each batch how many samples of the data set all ranks have reached.
  Totals evaluate(data::Loader& loader, const std::function<void(std::int64_t)>& progress = {});

  // Bits that any rank may set for all to see: `mine` is asked for this rank's at the begin of every step and in an
  // evaluation after every batch, where bits of `ends_evaluation` make this rank leave. requests() are those of all
  // ranks in the last step or evaluation, the same on each, so what they ask for can be done by all together.
  void listen(std::function<std::uint64_t()> mine, std::uint64_t ends_evaluation = 0);
  std::uint64_t requests() const { return requests_; }
  // More that rides in a step's control block: `mine` is called at the begin of every step, adds to this rank's sums
  // (TrainerOptions::sums of them, zero at first), and returns further bits for requests(). sums() are those of all
  // ranks in the last step.
  void vote(std::function<std::uint64_t(std::span<double> sums)> mine);
  std::span<const double> sums() const;

  // This rank's part of a data set, in steps of the global batch: for the loaders that step() and evaluate() are fed
  // from.
  data::DistributedSampler sampler(const data::Dataset& dataset, const SamplingOptions& options = {}) const;

  // Profiles this rank's steps from now on, against what its cores and memory can do, which is measured first: so all
  // ranks of a node call it at the same time, or the figures are too good. profile() is null without it.
  void start_profile() { profile_ = std::make_unique<StepProfile>(measure_peaks()); }
  const StepProfile* profile() const { return profile_.get(); }

  // From now on `inspect` is called in every step after all gradients are summed and before weights change: gradient()
  // then is this step's. It returns a factor for the gradient (1: as it is). All ranks set it alike.
  void before_update(std::function<double()> inspect);
  // How to go back to a state that can be trusted: loads it (load()) on all ranks, and false if there is none.
  // Collective, called within step() and verify().
  void on_roll_back(std::function<bool()> roll_back) { roll_back_ = std::move(roll_back); }
  // Whether this update's weights and states are as they were written, or have been repaired; false: rolled back, to an
  // earlier update. Throws UntrustedError if neither can be. Collective; without guards it looks at nothing.
  bool verify();
  std::int64_t skipped() const { return skipped_; }  // updates that guards held back
  // Notes what happens when in the steps that follow; null: nothing. The trace outlives them.
  void note_in(Trace* trace) {
    trace_ = trace;
    engine_->note_in(trace);
  }
  // Of the last step, on this rank: computing, waiting, who was last.
  const GradientEngine::StepTimes& times() const { return engine_->times(); }

  std::int64_t updates() const { return updates_; }
  // What beside threads and BLAS decides in which order kernels sum: instruction sets, oneDNN, precision, choices.
  std::string kernels() const;
  // What this rank allocates for training: the model, and what gradients are received into. Batches, libraries and
  // MPI come on top.
  std::size_t bytes() const;
  std::size_t state_bytes() const;  // of the tensors that state() makes
  const WorldLayout& world() const { return world_; }
  // How gradients travel and who updates what, and why; for the log.
  std::string describe_parallel() const;
  // Makes updates of the last step that are still due; with late_updates for all ranks together.
  void settle() { engine_->settle(); }
  // With the last step's weights; with late_updates for all ranks together.
  CompiledModel& model() {
    engine_->settle();
    return model_;
  }
  const TrainerOptions& options() const { return options_; }

  // By full name, in logical order, as of the last step: the gradient of the mean loss, and values that the model
  // function observed (of the last micro-batch of this rank; throws Error before the first one and after an
  // evaluation). gradient() is collective.
  Tensor gradient(const std::string& parameter);
  Tensor observed(const std::string& name) const;

  // Weights to start from, out of a file of save_weights(), a checkpoint, or torchvision's as h5py wrote them: rank 0
  // reads, all ranks get them. The optimizer's state stays. Throws on all ranks what train::load_weights() throws.
  LoadReport load_weights(const std::filesystem::path& file, const LoadOptions& options = {});

  // "model/NAME", "optimizer/STATE/NAME"; collective, and the root's are complete; empty on ranks that do not want it.
  // load() is strict (see state.h) and broadcasts nothing; it leaves the optimizer's state alone if `weights_only`.
  std::vector<checkpoint::NamedTensor> state(bool wanted = true);
  // The same in two parts: memory for a copy, and making it, which all ranks do together and those that want none with
  // null. Training may go on while tensors() of the copy are read.
  std::unique_ptr<StateSnapshot> make_snapshot();
  void snapshot(StateSnapshot* into);
  void load(const std::vector<checkpoint::NamedTensor>& tensors, std::int64_t updates, bool weights_only = false);
  std::uint64_t weights_hash();  // of values in logical order
  // Of each tensor that state() gives, in its order. Collective: ranks share the work, and all get the result.
  std::vector<TensorHash> state_hashes();

 private:
  struct Local {  // this rank's samples of a step
    const data::Batch* batch;
    std::int64_t first, global_size;  // position of its first sample among the global ones
  };
  CompileOptions tuned(const nn::Module& module, const ModelFunction& model);
  std::map<std::string, Type> types_of(std::int64_t samples) const;
  Plan& fill(Mode mode, const data::Batch& batch, Range rows, std::uint64_t step);
  Domains domains(const nn::Module& module);
  bool drives_by_thread();
  void end_trial_step();
  class LeafHooks;
  void run_leaf(const Local& local, Range leaf);
  void require_ranks() const;
  void check_batch(const data::Batch& batch) const;
  void check_rate(double learning_rate) const;
  void add_forward(const Plan& plan, std::int64_t samples);
  void add_sums(const Plan& plan, std::span<double> sums, std::int64_t samples) const;
  const Totals& run_step(const Local& local, double learning_rate, std::uint64_t samples_word, std::uint64_t position);
  void add_up(const std::vector<std::vector<double>>& sums, std::uint64_t requests = 0);
  Range rows_of(const Local& local, std::int64_t leaf) const;
  bool is_run(Range leaf, std::int64_t micro) const {
    return plans_are_collective_ || part_of(leaf.size(), options_.accumulate, micro).size() > 0;
  }
  bool run_again(const Local& local, int attempts);
  bool recover(int attempts);
  void roll_back_or_throw(std::string text);
  bool refuse(const Local& local, int attempts);
  bool is_repaired(std::string& text);
  std::string compare_findings(const Local& local);
  void require_intact();
  std::vector<checkpoint::NamedTensor> guard_state();
  std::string who(int rank) const;
  template <class Visit>
  void repeat(const Local& local, const Visit& visit);
  std::string find_nonfinite(const Local& local);
  std::string find_spike(const Local& local, const std::string& parameter);
  std::string find_bad_input(Plan& plan, const data::Batch& batch, Range rows) const;
  void suspect(int rank, int times);
  void tell_findings();
  void damage_input(Plan& plan) const;
  void set_totals(std::span<const double> sums, Totals& totals) const;
  void move_statistics();
  void broadcast_weights();

  comm::Communicator comm_;
  WorldLayout world_;
  std::vector<data::Field> fields_;
  TrainerOptions options_;
  std::string path_reason_;
  NodeMemory memory_;
  std::shared_ptr<TreeCollective> collective_;  // that nodes of plans sum with; null for one rank
  std::uint64_t choices_ = 0;                   // of autotuning, hashed; before the model that is compiled by them
  CompiledModel model_;
  std::vector<std::string> counts_;
  std::vector<RunningStatistics> statistics_;  // of the nominal plan: who they belong to
  std::unique_ptr<Updater> updater_;
  Heartbeat own_heartbeat_;  // that nobody reads
  std::unique_ptr<GradientEngine> engine_;
  std::unique_ptr<MessageControl> evaluation_;            // what evaluations add up
  std::map<std::pair<Mode, std::int64_t>, Plan*> plans_;  // by samples, to find one without asking for types
  bool plans_are_collective_ = false;                     // so ranks without samples run them too
  std::function<std::uint64_t()> my_requests_ = [] { return std::uint64_t{0}; };
  std::function<std::uint64_t(std::span<double>)> my_vote_ = [](std::span<double>) { return std::uint64_t{0}; };
  std::uint64_t ends_evaluation_ = 0, requests_ = 0;
  Heartbeat& heartbeat_;
  Totals totals_;              // of the last step
  Plan* last_plan_ = nullptr;  // whose values are in memory: of training, null without
  double last_weight_ = 1;
  Trace* trace_ = nullptr;
  std::unique_ptr<OverlapTrial> trial_;  // null: decided
  std::unique_ptr<StepProfile> profile_;
  std::int64_t updates_ = 0;
  std::function<bool()> roll_back_;
  StepOutcome outcome_ = StepOutcome::Applied;
  std::int64_t skipped_ = 0, skipped_in_a_row_ = 0, findings_ = 0;
  std::int64_t furthest_ = 0;    // update from which memory was rolled back
  int rolled_back_ = 0;          // since then
  std::vector<int> suspicions_;  // by rank
};

}  // namespace lockstep::train
