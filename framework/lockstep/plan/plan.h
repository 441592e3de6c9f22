// A graph that is ready to run: its kernels are built, its memory is assigned, its pointers are set. A run allocates
// nothing. The plans of a model share its ParameterStore and Arena, so only the outputs of the plan that ran last are
// valid. One thread at a time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/plan/describe.h"
#include "lockstep/plan/parameter_uses.h"
#include "lockstep/plan/plan_outputs.h"
#include "lockstep/plan/plan_pointers.h"

namespace lockstep::plan {

// Calls that a run makes to the code that reduces gradients and updates parameters at the same time. They come from the
// thread that runs the plan and may throw; the run then ends with the exception.
class PlanHooks {
 public:
  virtual ~PlanHooks() = default;
  // Called before the first step that reads values of this bucket; returns when they may be read.
  virtual void needs(int bucket) { (void)bucket; }
  // Called when the parameter's gradient is final in its slot and this run reads its value no more.
  virtual void retired(const Parameter* parameter) { (void)parameter; }
  // Called between two steps.
  virtual void poll() {}
};

class Plan {
 public:
  // The source of a plan: a graph for `batch` samples; a training graph has its gradient appended.
  struct Source {
    std::unique_ptr<Graph> graph;
    std::int64_t batch;
    Traced traced;
    std::vector<ParameterGradient> gradients;
  };
  // Chooses and builds kernels. `store` and `arena` outlive the plan. Throws Error where an op has no kernel or memory
  // is short.
  Plan(Source source, ParameterStore& store, Arena& arena, const kernels::KernelOptions& options = {},
       const kernels::KernelChooser& choose = {});
  ~Plan();

  // Runs all steps. Inputs must be filled; gradients go to the target. Throws Error of a kernel, such as SampleError.
  void run(GradientTarget target = {}) {
    PlanHooks none;
    run(target, none);
  }
  void run(GradientTarget target, PlanHooks& hooks);

  // Returns the memory of an input, in plain layout, which the caller fills before run(); and the type of an input.
  // Null if the plan does not read the input.
  void* input(const std::string& name);
  const Type* input_type(const std::string& name) const;
  // After run(), as f64: the loss, and its weight (the number of samples unless the loss has a weight). loss() throws
  // Error if the model function returns no loss.
  double loss() const { return scalar(outputs_.loss()); }
  double weight() const { return outputs_.weight() >= 0 ? scalar(outputs_.weight()) : static_cast<double>(batch_); }
  // The metrics of the model, and the values of one of their sums after run().
  const std::vector<PlanMetric>& metrics() const { return outputs_.metrics(); }
  std::span<const double> values(const PlanMetric::Sum& sum) const;
  // Copies of the scores and labels of a metric of pairs after run(), in logical order; in evaluations alone.
  Tensor scores(const PlanMetric& metric) const { return tensor(metric.scores); }
  Tensor labels(const PlanMetric& metric) const { return tensor(metric.labels); }
  // The groups of the pairs; an empty tensor where the metric has none.
  Tensor groups(const PlanMetric& metric) const { return metric.groups < 0 ? Tensor() : tensor(metric.groups); }
  // Returns a copy of the prediction, or of an observed value, after run(): in logical order, bf16 converted to f32.
  // Throws Error if the model has no such value.
  Tensor prediction() const;
  Tensor observed(const std::string& name) const { return tensor(outputs_.observed(name)); }
  std::vector<std::string> observed_names() const { return outputs_.observed_names(); }
  // The running statistics of the model, and the batch sums of the i-th of them: 2 C doubles, owned by the plan.
  const std::vector<RunningStatistics>& statistics() const { return graph_->statistics(); }
  const double* statistic_sums(std::size_t i) const;
  std::int64_t batch() const { return batch_; }
  // Whether the plan has nodes that all ranks run together.
  bool is_collective() const;

  // Whether the outputs of a step are finite. Valid right after the step, before the next one.
  bool is_finite(std::size_t step) const;

  // Descriptions as text: see describe.h.
  std::string describe() const { return plan::describe(assembly_, arena_bytes(), constant_bytes()); }
  std::string operations() const { return plan::operations(assembly_); }
  const Assembly& assembly() const { return assembly_; }
  const std::vector<PlanStep>& steps() const { return assembly_.steps; }
  std::string field(const PlanStep& step, std::size_t input) const { return assembly_.field(step, input); }
  std::size_t arena_bytes() const { return memory_.arena_bytes(); }
  std::size_t constant_bytes() const { return memory_.constant_bytes(); }
  // Makes run() measure the time of every step from now on; seconds() is the sum over runs, by step.
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
