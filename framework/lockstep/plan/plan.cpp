#include "lockstep/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "lockstep/core/error.h"
#include "lockstep/core/finite.h"

namespace lockstep::plan {
namespace {

template <class T>
void add_to(void* target, const void* source, std::int64_t n) {
  auto* t = static_cast<T*>(target);
  const auto* s = static_cast<const T*>(source);
#pragma omp parallel for simd schedule(static) if (n > 65536)
  for (std::int64_t i = 0; i < n; ++i) t[i] += s[i];
}

// Throws the error of a kernel, which may begin with "[op] ", with the module path of its node.
[[noreturn]] void fail_in(const PlanStep& step, std::string_view what) {
  const std::string tag = fmt::format("[{}] ", step.op->name());
  if (what.starts_with(tag)) what.remove_prefix(tag.size());
  fail(step.op->name(), "{}: {}", step.path, what);
}

}  // namespace

Plan::Plan(Source source, ParameterStore& store, Arena& arena, const kernels::KernelOptions& options,
           const kernels::KernelChooser& choose)
    : graph_(std::move(source.graph)),
      store_(store),
      batch_(source.batch),
      outputs_(*graph_, source.traced),
      assembly_(assemble_graph(source.gradients, options, choose)),
      kernels_(build_kernels()),
      memory_(assembly_, kernels_, store, arena),
      uses_(assembly_, store),
      has_constants_(std::ranges::any_of(assembly_.steps, &PlanStep::constant)) {}

Plan::~Plan() = default;

Assembly Plan::assemble_graph(const std::vector<ParameterGradient>& gradients, const kernels::KernelOptions& options,
                              const kernels::KernelChooser& choose) const {
  const std::vector<Value>& outputs = outputs_.values();
  const bool first = !store_.allocated();
  if (first) {  // the layouts of its kernels become the persistent form
    const Assembly wishes =
        assemble({*graph_, outputs, gradients, [](const Parameter*) { return Layout{}; }, options, choose});
    std::vector<const Parameter*> order;
    for (const ParameterGradient& g : gradients) {
      if (g.parameter != nullptr) order.push_back(g.parameter);
    }
    store_.allocate(wishes.natural_layouts, order);
  }
  for (const ParameterGradient& g : gradients) {
    if (g.parameter == nullptr) continue;
    check(store_.has_gradient(g.parameter), "plan",
          "'{}' has no memory for a gradient: make all parameters trainable and compile the training plan first",
          store_.name(g.parameter));
  }
  AssemblyRequest request{*graph_, outputs, gradients, [&](const Parameter* p) { return store_.layout(p); },
                          options, choose};
  if (!first) request.has_copy = [&](const Parameter* p, const Layout& l, DType t) { return store_.has_copy(p, l, t); };
  return assemble(request);
}

std::vector<std::unique_ptr<kernels::Kernel>> Plan::build_kernels() {
  std::vector<std::unique_ptr<kernels::Kernel>> kernels;
  for (PlanStep& step : assembly_.steps) {
    kernels.push_back(step.offer.build());
    step.offer.build = nullptr;
  }
  return kernels;
}

void Plan::run_step(std::size_t s) try {
  if (seconds_.empty()) return kernels_[s]->run(pointers_.arguments(s));
  const auto start = std::chrono::steady_clock::now();
  kernels_[s]->run(pointers_.arguments(s));
  seconds_[s] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
} catch (const Error& e) {
  if (has_own_class(e)) throw;
  fail_in(assembly_.steps[s], e.what());
} catch (const std::exception& e) {
  fail_in(assembly_.steps[s], e.what());
}

void Plan::refresh_constants() {
  if (constants_version_ == store_.version()) return;
  for (std::size_t s = 0; s < kernels_.size(); ++s) {
    if (assembly_.steps[s].constant) run_step(s);
  }
  constants_version_ = store_.version();
}

// Constants depend on many parameters, so this waits for all buckets.
void Plan::read_parameters(PlanHooks& hooks) {
  const bool constants_stale = has_constants_ && constants_version_ != store_.version();
  if (!constants_stale && !store_.own_copies_stale()) return;
  for (std::size_t b = 0; b < store_.buckets().size(); ++b) hooks.needs(static_cast<int>(b));
  if (store_.own_copies_stale()) store_.refresh_own_copies();
  refresh_constants();
}

void Plan::add_to_slot(int sink, int slot) const {
  const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(sink)];
  const std::int64_t n = b.layout.storage_elements(b.type.shape);
  void* target = store_.gradient(b.parameter, slot);
  b.type.dtype == DType::F64 ? add_to<double>(target, address(sink), n) : add_to<float>(target, address(sink), n);
}

void Plan::run(GradientTarget target, PlanHooks& hooks) {
  memory_.reserve();  // the arena is large enough, unless memory ran out when another plan was made
  pointers_.bind(assembly_, memory_);
  pointers_.aim(target, memory_);
  read_parameters(hooks);
  for (std::size_t s = 0; s < kernels_.size(); ++s) {
    if (assembly_.steps[s].constant) continue;
    for (int bucket : uses_.needs(s)) hooks.needs(bucket);
    run_step(s);
    for (int sink : assembly_.steps[s].sinks) {
      if (target.accumulate) add_to_slot(sink, target.slot);
    }
    for (const Parameter* parameter : uses_.retired(s)) hooks.retired(parameter);
    hooks.poll();
  }
}

void* Plan::input(const std::string& name) {
  memory_.reserve();
  pointers_.bind(assembly_, memory_);
  const auto found = assembly_.inputs.find(name);
  return found == assembly_.inputs.end() ? nullptr : address(found->second);
}

const Type* Plan::input_type(const std::string& name) const {
  const auto found = assembly_.inputs.find(name);
  return found == assembly_.inputs.end() ? nullptr : &assembly_.buffers[static_cast<std::size_t>(found->second)].type;
}

double Plan::scalar(int output) const {
  check(output >= 0, "plan", "the model function did not return this value");
  const int b = assembly_.outputs[static_cast<std::size_t>(output)];
  const void* at = address(b);
  const DType dtype = assembly_.buffers[static_cast<std::size_t>(b)].type.dtype;
  check(dtype == DType::F32 || dtype == DType::F64, "plan", "a scalar result is {}, expected f32 or f64",
        name_of(dtype));
  return assembly_.buffers[static_cast<std::size_t>(b)].type.dtype == DType::F64
             ? *static_cast<const double*>(at)
             : static_cast<double>(*static_cast<const float*>(at));
}

Tensor Plan::tensor(int output) const {
  const int buffer = assembly_.outputs[static_cast<std::size_t>(output)];
  const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(buffer)];
  Tensor result(b.type.shape, b.type.dtype);
  if (result.elements() > 0) reorder(b.type.shape, b.type.dtype, b.layout, address(buffer), {}, result.raw());
  return b.type.dtype == DType::BF16 ? result.to(DType::F32) : std::move(result);
}

Tensor Plan::prediction() const {
  check(outputs_.prediction() >= 0, "plan", "the model function returned no prediction");
  return tensor(outputs_.prediction());
}

const double* Plan::statistic_sums(std::size_t i) const {
  return static_cast<const double*>(address(assembly_.outputs[static_cast<std::size_t>(outputs_.statistic(i))]));
}

std::span<const double> Plan::values(const PlanMetric::Sum& sum) const {
  check(sum.output >= 0, "plan", "the sums of a metric of evaluations alone are read after a training step");
  const int buffer = assembly_.outputs[static_cast<std::size_t>(sum.output)];
  return {static_cast<const double*>(address(buffer)), sum.elements};
}

bool Plan::is_collective() const {
  return std::ranges::any_of(assembly_.steps, [](const PlanStep& step) { return step.op->is_collective(); });
}

bool Plan::is_finite(std::size_t s) const {
  const std::vector<int>& outputs = assembly_.steps[s].outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(outputs[i])];
    if (first_nonfinite(pointers_.arguments(s).outputs[i], b.type.dtype, b.layout.storage_elements(b.type.shape)) >= 0)
      return false;
  }
  return true;
}

}  // namespace lockstep::plan
