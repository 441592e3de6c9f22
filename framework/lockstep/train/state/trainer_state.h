// The state of training between steps: weights, the optimizer's state, and the number of updates. Returns and replaces
// it by names, in logical order. Functions are collective unless they say otherwise; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/state_snapshot.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/parallel/gradient_engine.h"
#include "lockstep/train/prepare/prepared_model.h"
#include "lockstep/train/report/tensor_hash.h"
#include "lockstep/train/state/table_state.h"
#include "lockstep/train/state/weight_averages.h"

namespace lockstep::train {

class TrainerState {
 public:
  // Both must outlive this object.
  TrainerState(PreparedModel& prepared, parallel::GradientEngine& engine)
      : comm_(prepared.comm()),
        world_(prepared.world()),
        options_(prepared.options()),
        memory_(prepared.memory()),
        model_(prepared.model()),
        updater_(&prepared.updater()),
        engine_(&engine),
        averages_(prepared, engine),
        tables_(prepared.tables()) {}

  std::int64_t updates() const { return updates_; }
  void applied(std::int64_t updates) { updates_ = updates; }
  WeightAverages& averages() { return averages_; }
  parallel::NoiseMeter& noise() { return noise_; }

  // Returns the gradient of the last step's mean loss; `weight` is the sum of its samples' weights.
  Tensor gradient(const std::string& parameter, double weight);
  std::vector<io::NamedTensor> state(bool wanted);
  std::size_t state_bytes() const;                             // size of the tensors of state(); no communication
  std::unique_ptr<checkpoint::StateSnapshot> make_snapshot();  // memory for a copy; no communication
  // Copies the state; `tables` says what becomes of sparse tables (Trainer::snapshot()).
  void snapshot(checkpoint::StateSnapshot* into, const TableSave& tables = {});
  const TableState& tables() const { return tables_; }
  void load(const std::vector<io::NamedTensor>& tensors, std::int64_t updates, bool weights_only);
  // Loads rank 0's tensors, which are sent, one at a time, to the ranks that write them (tensor_broadcast.h); `file`
  // names them in errors. If a tensor arrives damaged, all ranks throw AgreedError at the end, and the state must not
  // be used.
  void load(const io::TensorSource& of_root, const std::string& file, std::int64_t updates);
  checkpoint::LoadReport load_weights(const std::filesystem::path& file, const checkpoint::LoadOptions& options);
  std::uint64_t weights_hash();
  std::vector<TensorHash> state_hashes();
  void broadcast_weights();  // sends rank 0's weights to all ranks; an average of weights begins with them

 private:
  std::span<const double> guard_norms() const;         // norms that a checkpoint has for the guard; empty: none
  std::vector<io::NamedTensor> further_state() const;  // of guard, averages and noise
  void load_further(const std::vector<io::NamedTensor>& tensors);
  void begin_load();
  void beat();
  void load_from(const io::TensorSource& source, std::int64_t updates, bool weights_only,
                 const std::function<void()>& check_received);

  const comm::Communicator& comm_;
  const parallel::WorldLayout& world_;
  const TrainerOptions& options_;
  parallel::NodeMemory& memory_;
  plan::CompiledModel& model_;
  parallel::Updater* updater_;
  parallel::GradientEngine* engine_;
  WeightAverages averages_;
  parallel::NoiseMeter noise_;
  TableState tables_;
  std::int64_t updates_ = 0;
};

}  // namespace lockstep::train
