// A graph made ready to run: kernels built, memory laid out, pointers set. Running it allocates nothing. Plans of one
// model share its ParameterStore and Arena, so only the last run plan's outputs are valid. One thread at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lockstep/plan/assembly.h"
#include "lockstep/plan/parameter_store.h"
#include "lockstep/plan/trace.h"

namespace lockstep {

// Where a run leaves parameter gradients: overwriting slot `slot`, or added to what is there.
struct GradientTarget {
  int slot = 0;
  bool accumulate = false;
};

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
  Plan(Source source, ParameterStore& store, Arena& arena, const KernelOptions& options = {},
       const KernelChooser& choose = {});
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
  double loss() const { return scalar(loss_); }
  double weight() const { return weight_ >= 0 ? scalar(weight_) : static_cast<double>(batch_); }
  double count(const std::string& name) const;
  const std::vector<std::string>& counts() const { return count_names_; }
  Tensor prediction() const;
  // An observed value in logical order, after run(). Of bf16 values this, like prediction(), makes f32.
  Tensor observed(const std::string& name) const;
  std::vector<std::string> observed_names() const;
  // Batch sums of the i-th running statistic, 2 C doubles.
  const std::vector<RunningStatistics>& statistics() const { return graph_->statistics(); }
  const double* statistic_sums(std::size_t i) const;
  std::int64_t batch() const { return batch_; }
  // Has nodes that all ranks run together.
  bool is_collective() const;

  // Whether what a step has left is finite; right after it, before the next one.
  bool is_finite(std::size_t step) const;

  // For people: a line per step with shapes, layouts, bytes, FLOPs; and the totals.
  std::string describe() const;
  // A line per operation of the model and its gradient, with its attributes and shapes. The same on every processor for
  // one model: reorders and element types, which follow from the kernels that there are, are left out.
  std::string operations() const;
  const std::vector<PlanStep>& steps() const { return assembly_.steps; }
  std::size_t arena_bytes() const { return arena_bytes_; }
  std::size_t constant_bytes() const { return constant_bytes_; }
  // From now on run() takes the time of every step: seconds by step, summed over runs.
  void start_profile() { seconds_.assign(kernels_.size(), 0.0); }
  const std::vector<double>& seconds() const { return seconds_; }
  double flops() const;
  std::size_t bytes(const PlanStep& step) const;  // of its inputs and outputs, padding included

 private:
  void lay_out();
  void run_step(std::size_t step);
  void refresh_constants();
  void find_parameter_uses();
  void read_parameters(PlanHooks& hooks);
  void add_to_slot(int sink, int slot) const;
  void bind();
  void aim(GradientTarget target);
  void* address(int buffer) const;
  double scalar(int output) const;
  Tensor tensor(int output) const;
  int keep(Value value, std::vector<Value>& outputs) const;

  std::unique_ptr<Graph> graph_;
  ParameterStore& store_;
  Arena& arena_;
  Assembly assembly_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<Lifetime> workspaces_;                    // by step
  std::vector<std::vector<int>> needs_;                 // by step: buckets that are read for the first time
  std::vector<std::vector<const Parameter*>> retired_;  // by step: after it
  bool has_constants_ = false;
  std::size_t arena_bytes_ = 0, constant_bytes_ = 0;
  AlignedBuffer constants_;
  std::uint64_t constants_version_ = 0;  // of the parameters that they were computed from
  std::vector<double> seconds_;          // empty: no profile
  std::int64_t batch_;
  int loss_ = -1, weight_ = -1, prediction_ = -1;  // indices into assembly_.outputs
  std::vector<std::string> count_names_;
  std::map<std::string, int> counts_, observed_;
  std::vector<int> statistics_;

  struct GradientPointer {
    std::size_t at;  // index into pointers_
    int buffer;
  };
  std::vector<void*> pointers_;       // inputs and outputs of every step
  std::vector<Arguments> arguments_;  // by step
  std::vector<GradientPointer> gradient_pointers_;
  GradientTarget aimed_{-1, false};
  int bound_generation_ = -1;
};

}  // namespace lockstep
