// One data-parallel training step, and what surrounds it: forward, loss, backward, reduction over all ranks, update.
// Needs a communicator and a model, no command line and no files, so it fits into a caller's own program. All ranks
// construct it and call it alike; one thread. After an Error of a step or an evaluation, also of one that refuses its
// batch or rate, the ranks are out of step: the communicator is poisoned, and ranks of the node that wait for this one
// throw PeerError, so end the job, as train::guard_main() does (train/run/guard_main.h). An AgreedError changes
// nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/stream.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/step/driver_trial.h"
#include "lockstep/train/step/evaluator.h"
#include "lockstep/train/step/prepared_model.h"
#include "lockstep/train/step/step_guard.h"
#include "lockstep/train/step/step_runner.h"
#include "lockstep/train/step/step_votes.h"
#include "lockstep/train/step/totals.h"
#include "lockstep/train/step/trainer_options.h"
#include "lockstep/train/step/trainer_state.h"

namespace lockstep::train {

class Trainer {
 public:
  // `fields` are a batch's. Compiles the nominal plan, and broadcasts rank 0's weights.
  Trainer(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
          std::vector<data::Field> fields, TrainerOptions options);
  ~Trainer();

  // Trains one global batch, of which `batch` holds this rank's part (maybe none of it), at this learning rate. The
  // totals are valid until the next step.
  const Totals& step(const data::Batch& batch, double learning_rate);
  // Throws AgreedError, as step() does then, unless a batch of so many samples over all ranks can be trained: every
  // part of it gives a batch norm none or at least two values per channel. No communication.
  void check_batch(std::int64_t samples) const { prepared_.check_batch(samples); }
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
  std::uint64_t requests() const { return votes_.agreed(); }
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
  void start_profile() { runner_.start_profile(); }
  const StepProfile* profile() const { return runner_.profile(); }

  // From now on `inspect` is called in every step after all gradients are summed and before weights change: gradient()
  // then is this step's. It returns a factor for the gradient (1: as it is). All ranks set it alike.
  void before_update(std::function<double()> inspect);
  // How to go back to a state that can be trusted: loads it (load()) on all ranks, and false if there is none.
  // Collective, called within step() and verify().
  void on_roll_back(std::function<bool()> roll_back) { guard_.memory().on_roll_back(std::move(roll_back)); }
  // Whether this update's weights and states are as they were written, or have been repaired; false: rolled back, to an
  // earlier update. Throws UntrustedError if neither can be. Collective; without guards it looks at nothing.
  bool verify();
  std::int64_t skipped() const { return guard_.gradient().skipped(); }  // updates that guards held back
  // Notes what happens when in the steps that follow; null: nothing. The trace outlives them.
  void note_in(Trace* trace) {
    runner_.note_in(trace);
    engine_.note_in(trace);
  }
  // Of the last step, on this rank: computing, waiting, who was last.
  const parallel::GradientEngine::StepTimes& times() const { return engine_.times(); }

  std::int64_t updates() const { return state_.updates(); }
  // What beside threads and BLAS decides in which order kernels sum: instruction sets, oneDNN, precision, choices.
  std::string kernels() const { return prepared_.kernels(); }
  // What this rank allocates for training: the model, and what gradients are received into. Batches, libraries and
  // MPI come on top.
  std::size_t bytes() const;
  std::size_t state_bytes() const { return state_.state_bytes(); }  // of the tensors that state() makes
  const parallel::WorldLayout& world() const { return prepared_.world(); }
  // How gradients travel and who updates what, and why; for the log.
  std::string describe_parallel() const { return prepared_.describe_parallel(driver_.describe(engine_)); }
  // Makes updates of the last step that are still due; with late_updates for all ranks together.
  void settle() { engine_.settle(); }
  // With the last step's weights; with late_updates for all ranks together.
  plan::CompiledModel& model() {
    engine_.settle();
    return prepared_.model();
  }
  const TrainerOptions& options() const { return prepared_.options(); }

  // By full name, in logical order, as of the last step: the gradient of the mean loss, and values that the model
  // function observed (of the last micro-batch of this rank; throws Error before the first one and after an
  // evaluation). gradient() is collective.
  Tensor gradient(const std::string& parameter) { return state_.gradient(parameter, last_weight_); }
  Tensor observed(const std::string& name) const { return runner_.observed(name); }

  // Weights to start from, out of a file of save_weights(), a checkpoint, or torchvision's as h5py wrote them: rank 0
  // reads, all ranks get them. The optimizer's state stays. Throws on all ranks what train::load_weights() throws.
  checkpoint::LoadReport load_weights(const std::filesystem::path& file, const checkpoint::LoadOptions& options = {});

  // "model/NAME", "optimizer/STATE/NAME"; collective, and the root's are complete; empty on ranks that do not want it.
  // load() is strict (see checkpoint/training_state.h) and broadcasts nothing; it leaves the optimizer's state alone if
  // `weights_only`.
  std::vector<io::NamedTensor> state(bool wanted = true);
  // The same in two parts: memory for a copy, and making it, which all ranks do together and those that want none with
  // null. Training may go on while tensors() of the copy are read.
  std::unique_ptr<checkpoint::StateSnapshot> make_snapshot() { return state_.make_snapshot(); }
  void snapshot(checkpoint::StateSnapshot* into);
  void load(const std::vector<io::NamedTensor>& tensors, std::int64_t updates, bool weights_only = false);
  // The same of rank 0's tensors, which are sent, one at a time, to the ranks that write them (tensor_broadcast.h);
  // `place` names them in errors. Where a tensor arrives damaged all ranks throw AgreedError at the end, and the state
  // is not to be used.
  void load(const io::TensorSource& of_root, const std::string& place, std::int64_t updates);
  std::uint64_t weights_hash() { return state_.weights_hash(); }  // of values in logical order
  // Of each tensor that state() gives, in its order. Collective: ranks share the work, and all get the result.
  std::vector<TensorHash> state_hashes() { return state_.state_hashes(); }

 private:
  void require_ranks() const;
  void check_rate(double learning_rate) const;
  const Totals& run_step(const LocalBatch& local, parallel::StepStart start);
  void finish_update();
  void poison();
  template <class Work>
  void or_poison(const Work& work);
  template <class Work>
  bool agreed_or_poison(const Work& work);

  PreparedModel prepared_;
  DriverTrial driver_;
  parallel::GradientEngine engine_;
  StepVotes votes_;
  BatchFeed feed_;
  StepRunner runner_;
  Evaluator evaluator_;
  TrainerState state_;
  StepGuard guard_;
  Totals totals_;  // of the last step
  double last_weight_ = 1;
};

}  // namespace lockstep::train
