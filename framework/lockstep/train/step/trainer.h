// Makes data-parallel training steps: forward, loss, backward, reduction over all ranks, update; also evaluates, and
// loads and saves the state. Needs a communicator and a model, and no command line or files, so it fits into a caller's
// program. All ranks must make the same calls; one thread. After an Error of a step or an evaluation, also of a refused
// batch or rate, the ranks are out of step: the communicator is poisoned, and ranks of the node that wait for this one
// throw PeerError. The caller must then end the job, as train::guard_main() does (train/run/guard_main.h). After an
// AgreedError the trainer is unchanged and usable. A caller that uses the objects behind model(), world(), times(),
// profile() or make_snapshot() includes their headers too: the types are only declared here.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/data/batch.h"
#include "lockstep/data/dataset.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/plan/trace.h"
#include "lockstep/train/prepare/trainer_options.h"
#include "lockstep/train/report/tensor_hash.h"
#include "lockstep/train/runner/totals.h"

namespace lockstep {
class Trace;
struct Table;
}  // namespace lockstep
namespace lockstep::checkpoint {
class StateSnapshot;
}
namespace lockstep::comm {
class Communicator;
}
namespace lockstep::data {
class Loader;
}
namespace lockstep::io {
struct TensorSource;
}
namespace lockstep::nn {
class Module;
}
namespace lockstep::parallel {
struct StepTimes;
struct WorldLayout;
}  // namespace lockstep::parallel
namespace lockstep::plan {
class CompiledModel;
}

namespace lockstep::train {

class StepProfile;
struct TableSave;
struct TrainerParts;

class Trainer {
 public:
  // Compiles the nominal plan and broadcasts rank 0's weights. `fields` are the fields of a batch. `comm` is
  // duplicated; `module` must outlive the trainer. Collective; throws AgreedError for wrong options and if ranks
  // differ.
  Trainer(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
          std::vector<data::Field> fields, TrainerOptions options);
  ~Trainer();

  // Trains one global batch; `batch` is this rank's part, with fields of shape (samples of this rank, ...), and may be
  // empty. A batch of a stream is this rank's own (data::StepSamples::is_streamed()). Returns the totals of all ranks,
  // valid until the next step.
  const Totals& step(const data::Batch& batch, double learning_rate);
  // Throws AgreedError, as step() would, unless a batch of `samples` samples over all ranks can be trained: each part
  // must give each batch norm no value or at least two values per channel. No communication.
  void check_batch(std::int64_t samples) const;
  // Names the batch that the step after the next one will train, for a model with sharded tables: its ids travel while
  // the next step is computed. It must not change before that step returns, nor its ids before they are trained. All
  // ranks call it, or none; without sharded tables it does nothing.
  void announce(const data::Batch& batch);
  // Trains the batches of streams: each rank's own batch, or none after the end of its stream. If no rank has a sample,
  // nothing is trained and Totals::samples is 0.
  const Totals& step(const std::optional<data::Batch>& streamed, double learning_rate);
  // Evaluates the rest of the loader's epoch with running statistics and returns the totals of all ranks; evaluates the
  // average of the weights if there is one (TrainerOptions::average). Calls `progress` after each batch with the number
  // of samples of the data set that all ranks have reached.
  Totals evaluate(data::Loader& loader, const std::function<void(std::int64_t)>& progress = {});

  // Returns the model's prediction for the samples of a batch, (samples, ...) in logical order, computed by this rank
  // alone from the weights, not from their average; fields that it does not read may be missing. Waits until the last
  // step's weights are complete, as settle() does. Throws Error without a prediction of the model function and for an
  // empty batch.
  Tensor predict(const data::Batch& batch);

  // Returns the loss and the number of this rank's samples in the last step.
  const OwnTotals& own_totals() const;

  // Registers `mine`, which returns this rank's request bits; called at the start of every step and after every batch
  // of an evaluation, which this rank leaves if a bit of `ends_evaluation` is set. requests() returns the bits of all
  // ranks in the last step or evaluation, equal on all ranks, so that all ranks can answer them together. Throws Error
  // for an empty function.
  void listen(std::function<std::uint64_t()> mine, std::uint64_t ends_evaluation = 0);
  std::uint64_t requests() const;
  // Registers `mine`, which is called at the start of every step, adds to this rank's sums (TrainerOptions::sums
  // values, zero at first), and returns further bits for requests(). sums() returns the sums over all ranks in the last
  // step; the control block of the step carries them. Throws Error for an empty function.
  void vote(std::function<std::uint64_t(std::span<double> sums)> mine);
  std::span<const double> sums() const;

  // Makes a sampler of this rank's part of a data set, for the loaders of step() and evaluate().
  data::DistributedSampler sampler(const data::Dataset& dataset, const SamplingOptions& options = {}) const;

  // Profiles this rank's later steps. First measures the peaks of cores and memory: all ranks of a node must call it at
  // the same time, otherwise the measured peaks are too high. profile() is null before.
  void start_profile();
  const StepProfile* profile() const;

  // Registers `inspect`, which is called in every step after all gradients are summed and before weights change, when
  // gradient() returns this step's gradient. It returns a factor for the gradient (1: unchanged), equal on all ranks.
  // All ranks must register it. Throws Error for an empty function.
  void before_update(std::function<double()> inspect);
  // Registers `roll_back`, which loads an earlier, trusted state on all ranks with load(), or returns false if there is
  // none. step() and verify() call it collectively.
  void on_roll_back(std::function<bool()> roll_back);
  // Returns when all ranks have called it with the same `orders` (step/order_word.h), between two steps. Throws Error
  // on all ranks if orders differ, or if a rank makes the next step instead, whose passes must not communicate
  // (communicates_in_passes()). Collective.
  void agree(std::uint64_t orders);
  // Returns whether ranks wait for each other in forward passes, as with synchronised batch norm.
  bool communicates_in_passes() const;
  // Returns the rules of the model's metrics, whose results Totals::metrics contains.
  std::vector<MetricRule> metrics() const;
  // Verifies weights and states in memory. Returns true if they are as they were written or are repaired now, false
  // after a rollback to an earlier update; throws UntrustedError if both are impossible. Collective; without guards it
  // checks nothing.
  bool verify();
  std::int64_t skipped() const;  // number of updates that guards skipped
  // Records the spans of later steps in `trace`, which must outlive them; null: records nothing.
  void note_in(Trace* trace);
  // Returns the times of the last step on this rank, in seconds: computing, waiting, and the slowest rank.
  const parallel::StepTimes& times() const;

  // Adds the present weights to the mean of SWA (TrainerOptions::average); nothing without one. Collective.
  void add_to_average();

  std::int64_t updates() const;  // number of updates done
  // Returns the facts, except threads and BLAS, that determine the order of sums in kernels: instruction sets, oneDNN,
  // precision, choices.
  std::string kernels() const;
  // Returns the bytes that this rank allocates for training: the model and the buffers of received gradients, without
  // batches, libraries and MPI.
  std::size_t bytes() const;
  std::size_t state_bytes() const;  // size of the tensors that state() returns
  const parallel::WorldLayout& world() const;
  // Describes the path of gradients and the parts of updates, with reasons, for the log.
  std::string describe_parallel() const;
  // Waits until all ranks that share this rank's weights have made their parts of the last update, and makes late
  // updates of this rank. With late_updates, all ranks must call it together: they wait for each other's messages.
  void settle();
  // Gives rows of a sparse table their first values and states again, as in a new run; the list is the same on all
  // ranks. Collective. Throws Error, and changes nothing, for a table or a row that the model does not have.
  void reset_rows(const Table& table, std::span<const std::int64_t> rows);
  // Returns the model with the last step's weights; with late_updates, all ranks must call it together.
  plan::CompiledModel& model();
  const TrainerOptions& options() const;

  // Return, for the last step and in logical order, the gradient of the mean loss for a parameter's full name
  // (collective), and a value that the model function observed in this rank's last micro-batch (throws Error before the
  // first one and after an evaluation).
  Tensor gradient(const std::string& parameter);
  Tensor observed(const std::string& name) const;

  // Loads weights from a file of save_weights(), a checkpoint, or a file of torchvision's weights by h5py: rank 0 reads
  // and sends them to all ranks. The optimizer's state does not change. Collective; all ranks throw the Error of
  // checkpoint::load_weights().
  checkpoint::LoadReport load_weights(const std::filesystem::path& file, const checkpoint::LoadOptions& options = {});

  // Returns copies of all tensors of the state, "model/NAME" and "optimizer/STATE/NAME". Rank 0's list is complete;
  // ranks with `wanted` false get an empty list. Collective.
  std::vector<io::NamedTensor> state(bool wanted = true);
  // The same in two parts: make_snapshot() allocates memory for a copy, and snapshot() makes the copy; collective, with
  // null on ranks that want none. Training may go on while tensors() of the copy is read.
  std::unique_ptr<checkpoint::StateSnapshot> make_snapshot();
  void snapshot(checkpoint::StateSnapshot* into);
  // Passes the tensors of sparse tables to `tables.take` in place of the copy (train/state/table_state.h).
  void snapshot(checkpoint::StateSnapshot* into, const TableSave& tables);
  std::size_t table_bytes() const;    // size of the tensors of sparse tables, which are a part of state_bytes()
  std::size_t changed_bytes() const;  // size of those of a save of changed rows; collective
  // Replaces the state after `updates` updates by `tensors`, which must be equal on all ranks; with `weights_only`,
  // only the weights. Strict (see checkpoint/training_state.h); there is no broadcast, but all ranks must call it.
  void load(const std::vector<io::NamedTensor>& tensors, std::int64_t updates, bool weights_only = false);
  // Replaces the state by rank 0's tensors, which are sent, one at a time, to the ranks that write them
  // (tensor_broadcast.h); `file` names them in errors. If a tensor arrives damaged, all ranks throw AgreedError at the
  // end, and the state must not be used. Collective.
  void load(const io::TensorSource& of_root, const std::string& file, std::int64_t updates);
  std::uint64_t weights_hash();  // hash of the weights in logical order; collective
  // Returns the hash of each tensor of state(), in its order. Collective: ranks divide the work, and all get the
  // result.
  std::vector<TensorHash> state_hashes();

 private:
  std::unique_ptr<TrainerParts> parts_;
};

}  // namespace lockstep::train
