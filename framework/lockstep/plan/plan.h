// A graph made ready to run: kernels built, memory laid out, pointers set. Running it allocates nothing. Plans of one
// model share its ParameterStore and Arena, so only the last run plan's outputs are valid. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/plan/describe.h"
#include "lockstep/plan/parameter_uses.h"
#include "lockstep/plan/plan_outputs.h"
#include "lockstep/plan/plan_pointers.h"

namespace lockstep::plan {

// What a run tells whoever reduces its gradients and updates its parameters meanwhile.
class PlanHooks {
 public:
  virtual ~PlanHooks() = default;
  // Before the first step that reads values of this bucket: returns once they may be read.
  virtual void needs(int bucket) { (void)bucket; }
  // The parameter's gradient is final in its slot, and this run reads its value no more.
  virtual void retired(const Parameter* parameter) { (void)parameter; }
  // Between two steps.
  virtual void poll() {}
};

class Plan {
 public:
  // What is run: a graph as it is, for `batch` samples (training graphs with their gradient appended).
  struct Source {
    std::unique_ptr<Graph> graph;
    std::int64_t batch;
    Traced traced;
    std::vector<ParameterGradient> gradients;
  };
  Plan(Source source, ParameterStore& store, Arena& arena, const kernels::KernelOptions& options = {},
       const kernels::KernelChooser& choose = {});
  ~Plan();

  void run(GradientTarget target = {}) {
    PlanHooks none;
    run(target, none);
  }
  void run(GradientTarget target, PlanHooks& hooks);

  // An input's memory, plain layout, to be filled before run(); its type. Null if the plan does not read that input.
  void* input(const std::string& name);
  const Type* input_type(const std::string& name) const;
  // Scalars after run(), as f64: the loss, its weight (the number of samples unless the loss has its own), counts.
  double loss() const { return scalar(outputs_.loss()); }
  double weight() const { return outputs_.weight() >= 0 ? scalar(outputs_.weight()) : static_cast<double>(batch_); }
  double count(const std::string& name) const { return scalar(outputs_.count(name)); }
  const std::vector<std::string>& counts() const { return outputs_.count_names(); }
  Tensor prediction() const;
  // An observed value in logical order, after run(). Of bf16 values this, like prediction(), makes f32.
  Tensor observed(const std::string& name) const { return tensor(outputs_.observed(name)); }
  std::vector<std::string> observed_names() const { return outputs_.observed_names(); }
  // Batch sums of the i-th running statistic, 2 C doubles.
  const std::vector<RunningStatistics>& statistics() const { return graph_->statistics(); }
  const double* statistic_sums(std::size_t i) const;
  std::int64_t batch() const { return batch_; }
  // Has nodes that all ranks run together.
  bool is_collective() const;

  // Whether what a step has left is finite; right after it, before the next one.
  bool is_finite(std::size_t step) const;

  // See describe.h.
  std::string describe() const { return plan::describe(assembly_, arena_bytes(), constant_bytes()); }
  std::string operations() const { return plan::operations(assembly_); }
  const std::vector<PlanStep>& steps() const { return assembly_.steps; }
  std::size_t arena_bytes() const { return memory_.arena_bytes(); }
  std::size_t constant_bytes() const { return memory_.constant_bytes(); }
  // From now on run() takes the time of every step: seconds by step, summed over runs.
  void start_profile() { seconds_.assign(kernels_.size(), 0.0); }
  const std::vector<double>& seconds() const { return seconds_; }
  double flops() const { return flops_of(assembly_); }
  std::size_t bytes(const PlanStep& step) const { return bytes_of(assembly_, step); }

 private:
  Assembly assemble_graph(const std::vector<ParameterGradient>& gradients, const kernels::KernelOptions& options,
                          const kernels::KernelChooser& choose) const;
  std::vector<std::unique_ptr<kernels::Kernel>> build_kernels();
  void run_step(std::size_t step);
  void refresh_constants();
  void read_parameters(PlanHooks& hooks);
  void add_to_slot(int sink, int slot) const;
  void* address(int buffer) const { return memory_.address(buffer, pointers_.target()); }
  double scalar(int output) const;
  Tensor tensor(int output) const;

  std::unique_ptr<Graph> graph_;
  ParameterStore& store_;
  std::int64_t batch_;
  PlanOutputs outputs_;
  Assembly assembly_;
  std::vector<std::unique_ptr<kernels::Kernel>> kernels_;  // by step
  PlanMemory memory_;
  ParameterUses uses_;
  PlanPointers pointers_;
  bool has_constants_;
  std::uint64_t constants_version_ = 0;  // of the parameters that they were computed from
  std::vector<double> seconds_;          // empty: no profile
};

}  // namespace lockstep::plan
