// A model that is ready for training: compiled in its nominal shape, in memory that the ranks of a node share, and
// checked to be equal on all ranks. The constructor is collective and throws on all ranks if they differ or a check
// fails.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/data/dataset.h"
#include "lockstep/nn/module.h"
#include "lockstep/parallel/exchange/node_memory.h"
#include "lockstep/parallel/exchange/tree_collective.h"
#include "lockstep/parallel/tables/table_engine.h"
#include "lockstep/parallel/update/updater.h"
#include "lockstep/plan/compiled_model.h"
#include "lockstep/train/prepare/trainer_options.h"

namespace lockstep::train {

// The facts of the nominal training plan, which hold for all training plans.
struct NominalPlan {
  std::vector<plan::PlanMetric> metrics;
  std::vector<RunningStatistics> statistics;
  bool is_collective = false;  // true: its nodes sum over ranks, so ranks without samples run plans too

  std::size_t statistic_doubles() const;  // number of f64 sums of moments per shard
  // Returns the number of f64 sums of metrics that each step, or each evaluation, adds over all ranks.
  std::size_t sums(Mode mode) const;
};

class PreparedModel {
 public:
  PreparedModel(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
                std::vector<data::Field> fields, TrainerOptions options);
  PreparedModel(const PreparedModel&) = delete;
  PreparedModel& operator=(const PreparedModel&) = delete;

  const comm::Communicator& comm() const { return comm_; }
  const parallel::WorldLayout& world() const { return world_; }
  const std::vector<data::Field>& fields() const { return fields_; }
  const TrainerOptions& options() const { return options_; }
  Heartbeat& heartbeat() { return options_.heartbeat != nullptr ? *options_.heartbeat : own_heartbeat_; }
  parallel::NodeMemory& memory() { return memory_; }
  parallel::TreeCollective* collective() { return collective_.get(); }  // null for one rank
  parallel::TableEngine* tables() { return tables_.get(); }             // null for a model without sparse tables
  plan::CompiledModel& model() { return model_; }
  const plan::CompiledModel& model() const { return model_; }
  plan::ParameterStore& store() { return model_.parameters(); }
  const NominalPlan& nominal() const { return nominal_; }
  parallel::Updater& updater() { return *updater_; }

  std::map<std::string, Type> types_of(std::int64_t samples) const;
  // Throws AgreedError unless a batch of `samples` samples over all ranks can be trained. No communication.
  void check_batch(std::int64_t samples) const;
  // Returns the facts, except threads and BLAS, that determine the order of sums in kernels: instruction sets, oneDNN,
  // precision, choices.
  std::string kernels() const;
  // Describes the path of gradients and the parts of updates, with reasons; `driver` describes the communication's
  // driver.
  std::string describe_parallel(const std::string& driver) const;

 private:
  struct Chosen {
    std::string path_reason;    // for the path of gradients
    std::uint64_t kernels = 0;  // hash of autotuning's choices
  };

  parallel::Domains domains(const nn::Module& module);
  plan::CompileOptions tuned(const nn::Module& module, const plan::ModelFunction& model);
  void plan_nominal_batch(std::string& operations);
  void make_tables(const std::vector<NamedTable>& tables);

  comm::Communicator comm_;
  parallel::WorldLayout world_;
  std::vector<data::Field> fields_;
  TrainerOptions options_;
  Chosen chosen_;  // set before model_, which is compiled with autotuning's choices
  parallel::NodeMemory memory_;
  std::shared_ptr<parallel::TreeCollective> collective_;  // graph nodes sum over ranks with it
  plan::CompiledModel model_;
  NominalPlan nominal_;
  std::unique_ptr<parallel::Updater> updater_;
  std::shared_ptr<parallel::TableEngine> tables_;
  Heartbeat own_heartbeat_;  // for a caller without a watchdog
};

}  // namespace lockstep::train
