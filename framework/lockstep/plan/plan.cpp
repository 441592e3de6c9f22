#include "lockstep/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "lockstep/core/error.h"
#include "lockstep/core/finite.h"

namespace lockstep {
namespace {

template <class T>
void add_to(void* target, const void* source, std::int64_t n) {
  auto* t = static_cast<T*>(target);
  const auto* s = static_cast<const T*>(source);
#pragma omp parallel for simd schedule(static) if (n > 65536)
  for (std::int64_t i = 0; i < n; ++i) t[i] += s[i];
}

// What a kernel said, "[op] ..." or not, with the node that it ran for.
[[noreturn]] void fail_in(const PlanStep& step, std::string_view what) {
  const std::string tag = fmt::format("[{}] ", step.op->name());
  if (what.starts_with(tag)) what.remove_prefix(tag.size());
  fail(step.op->name(), "{}: {}", step.place, what);
}

}  // namespace

Inputs::Inputs(Graph& graph, const std::map<std::string, Type>& types) : graph_(graph) {
  for (const auto& [name, type] : types) {
    check(!name.starts_with('@'), "model", "an input is named '{}': names that begin with '@' are reserved", name);
    values_[name] = graph.input(name, type);
  }
}

Value Inputs::operator[](const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::string names;
    for (const auto& [n, v] : values_) names += (names.empty() ? "" : ", ") + n;
    fail("model", "there is no input '{}'; the batch has: {}", name, names);
  }
  return found->second;
}

Plan::Plan(Source source, ParameterStore& store, Arena& arena, const KernelOptions& options,
           const KernelChooser& choose)
    : graph_(std::move(source.graph)), store_(store), arena_(arena), batch_(source.batch) {
  const Traced& traced = source.traced;
  const auto& gradients = source.gradients;
  std::vector<Value> outputs;
  loss_ = keep(traced.loss.mean, outputs);
  weight_ = keep(traced.loss.weight, outputs);
  prediction_ = keep(traced.prediction, outputs);
  for (const auto& [name, value] : traced.counts) {
    check(value.type() == Type{Shape{}, DType::F64}, "model", "count '{}' is {}, expected an f64 scalar", name,
          value.type().str());
    counts_[name] = keep(value, outputs);
    count_names_.push_back(name);
  }
  for (const auto& [name, value] : graph_->observed()) observed_[name] = keep(value, outputs);
  for (const RunningStatistics& s : graph_->statistics()) statistics_.push_back(keep(s.sums, outputs));

  if (!store_.allocated()) {  // the nominal plan: its kernels' wishes become the persistent form
    const Assembly wishes =
        assemble({*graph_, outputs, gradients, [](const Parameter*) { return Layout{}; }, options, choose});
    std::vector<const Parameter*> order;
    for (const ParameterGradient& g : gradients) order.push_back(g.parameter);
    store_.allocate(wishes.natural_layouts, order);
  }
  for (const ParameterGradient& g : gradients) {
    check(store_.has_gradient(g.parameter), "plan",
          "'{}' has no memory for a gradient: compile the training plan first, and thaw parameters before that",
          store_.name(g.parameter));
  }
  assembly_ =
      assemble({*graph_, outputs, gradients, [&](const Parameter* p) { return store_.layout(p); }, options, choose});
  for (PlanStep& step : assembly_.steps) {
    kernels_.push_back(step.offer.build());
    step.offer.build = nullptr;
  }
  lay_out();
}

Plan::~Plan() = default;

int Plan::keep(Value value, std::vector<Value>& outputs) const {
  if (!value) return -1;
  outputs.push_back(value);
  return static_cast<int>(outputs.size()) - 1;
}

void Plan::lay_out() {
  plan_lifetimes(assembly_);
  std::vector<Lifetime*> lifetimes;
  for (PlanBuffer& b : assembly_.buffers) {
    const bool has_memory = b.alias < 0 && b.life.last >= 0 && b.life.bytes > 0;
    if (has_memory && (b.kind == PlanBuffer::Kind::Arena || b.kind == PlanBuffer::Kind::Gradient))
      lifetimes.push_back(&b.life);
  }
  for (std::size_t s = 0; s < kernels_.size(); ++s) {
    const int at = static_cast<int>(s);
    // Constants are computed before the first step, when inputs lie in the arena already.
    const int when = assembly_.steps[s].constant ? 0 : at;
    workspaces_.push_back({.bytes = kernels_[s]->workspace_bytes(), .first = when, .last = when});
  }
  for (Lifetime& w : workspaces_) {
    if (w.bytes > 0) lifetimes.push_back(&w);
  }
  for (PlanBuffer& b : assembly_.buffers) {
    if (b.kind != PlanBuffer::Kind::Constant || b.alias >= 0) continue;
    b.life.offset = constant_bytes_;
    constant_bytes_ += whole_lines(b.life.bytes);
  }
  constants_ = allocate_aligned(constant_bytes_);
  for (const PlanBuffer& b : assembly_.buffers) {
    if (b.kind == PlanBuffer::Kind::Derived) store_.derive(b.parameter, b.layout, b.type.dtype);
  }
  store_.make_copies();
  arena_bytes_ = assign_offsets(std::move(lifetimes));
  arena_.reserve(arena_bytes_);
  find_parameter_uses();
}

// A parameter retires when its gradient is final and its value was read for the last time: another rank may then write
// a value that is shared.
void Plan::find_parameter_uses() {
  std::map<const Parameter*, std::size_t> last_use;
  std::set<int> needed;
  needs_.resize(assembly_.steps.size());
  retired_.resize(assembly_.steps.size());
  const auto reads = [&](std::size_t s, int buffer) {
    const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(assembly_.root(buffer))];
    if (b.kind != PlanBuffer::Kind::Parameter && b.kind != PlanBuffer::Kind::Derived) return;
    last_use[b.parameter] = s;
    if (const int bucket = store_.bucket_of(b.parameter); bucket >= 0 && needed.insert(bucket).second)
      needs_[s].push_back(bucket);
  };
  for (std::size_t s = 0; s < assembly_.steps.size(); ++s) {
    has_constants_ = has_constants_ || assembly_.steps[s].constant;
    if (assembly_.steps[s].constant) continue;
    for (int b : assembly_.steps[s].inputs) reads(s, b);
  }
  for (std::size_t s = 0; s < assembly_.steps.size(); ++s) {
    for (int sink : assembly_.steps[s].sinks) {
      const Parameter* parameter = assembly_.buffers[static_cast<std::size_t>(sink)].parameter;
      const auto last = last_use.find(parameter);
      retired_[last == last_use.end() ? s : std::max(s, last->second)].push_back(parameter);
    }
  }
}

void* Plan::address(int buffer) const {
  const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(assembly_.root(buffer))];
  switch (b.kind) {
    case PlanBuffer::Kind::Parameter:
      return store_.value(b.parameter);
    case PlanBuffer::Kind::Derived:
      return store_.derived(store_.derive(b.parameter, b.layout, b.type.dtype));
    case PlanBuffer::Kind::Gradient:
      if (!aimed_.accumulate && aimed_.slot >= 0) return store_.gradient(b.parameter, aimed_.slot);
      break;
    case PlanBuffer::Kind::Constant:
      return constants_.get() + b.life.offset;
    case PlanBuffer::Kind::Arena:
      break;
  }
  return b.life.bytes == 0 ? nullptr : arena_.data() + b.life.offset;
}

void Plan::bind() {
  pointers_.clear();
  gradient_pointers_.clear();
  arguments_.clear();
  std::size_t count = 0;
  for (const PlanStep& step : assembly_.steps) count += step.inputs.size() + step.outputs.size();
  pointers_.reserve(count);  // arguments_ point into it
  const auto push = [&](int b) {
    const int root = assembly_.root(b);
    if (assembly_.buffers[static_cast<std::size_t>(root)].kind == PlanBuffer::Kind::Gradient) {
      gradient_pointers_.push_back({pointers_.size(), root});
    }
    pointers_.push_back(address(b));
  };
  for (std::size_t s = 0; s < assembly_.steps.size(); ++s) {
    const PlanStep& step = assembly_.steps[s];
    Arguments a{pointers_.data() + pointers_.size(), nullptr, nullptr};
    for (int b : step.inputs) push(b);
    a.outputs = pointers_.data() + pointers_.size();
    for (int b : step.outputs) push(b);
    if (workspaces_[s].bytes > 0) a.workspace = arena_.data() + workspaces_[s].offset;
    arguments_.push_back(a);
  }
  bound_generation_ = arena_.generation();
}

void Plan::aim(GradientTarget target) {
  if (target.slot == aimed_.slot && target.accumulate == aimed_.accumulate) return;
  aimed_ = target;
  for (const GradientPointer& g : gradient_pointers_) pointers_[g.at] = address(g.buffer);
}

void Plan::run_step(std::size_t s) try {
  if (seconds_.empty()) return kernels_[s]->run(arguments_[s]);
  const auto start = std::chrono::steady_clock::now();
  kernels_[s]->run(arguments_[s]);
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

// What is made of all parameters at once waits for all of them.
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
  arena_.reserve(arena_bytes_);  // which it has, unless memory ran out when another plan was made
  if (bound_generation_ != arena_.generation()) bind();
  aim(target);
  read_parameters(hooks);
  for (std::size_t s = 0; s < kernels_.size(); ++s) {
    if (assembly_.steps[s].constant) continue;
    for (int bucket : needs_[s]) hooks.needs(bucket);
    run_step(s);
    for (int sink : assembly_.steps[s].sinks) {
      if (target.accumulate) add_to_slot(sink, target.slot);
    }
    for (const Parameter* parameter : retired_[s]) hooks.retired(parameter);
    hooks.poll();
  }
}

void* Plan::input(const std::string& name) {
  arena_.reserve(arena_bytes_);
  if (bound_generation_ != arena_.generation()) bind();
  const auto found = assembly_.inputs.find(name);
  return found == assembly_.inputs.end() ? nullptr : address(found->second);
}

const Type* Plan::input_type(const std::string& name) const {
  const auto found = assembly_.inputs.find(name);
  return found == assembly_.inputs.end() ? nullptr : &assembly_.buffers[static_cast<std::size_t>(found->second)].type;
}

double Plan::scalar(int output) const {
  check(output >= 0, "plan", "the model function did not return the value that is read");
  const int b = assembly_.outputs[static_cast<std::size_t>(output)];
  const void* at = address(b);
  const DType dtype = assembly_.buffers[static_cast<std::size_t>(b)].type.dtype;
  check(dtype == DType::F32 || dtype == DType::F64, "plan", "a scalar that is read is {}, expected f32 or f64",
        name_of(dtype));
  return assembly_.buffers[static_cast<std::size_t>(b)].type.dtype == DType::F64
             ? *static_cast<const double*>(at)
             : static_cast<double>(*static_cast<const float*>(at));
}

double Plan::count(const std::string& name) const { return scalar(counts_.at(name)); }

Tensor Plan::tensor(int output) const {
  const int buffer = assembly_.outputs[static_cast<std::size_t>(output)];
  const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(buffer)];
  Tensor result(b.type.shape, b.type.dtype);
  if (result.elements() > 0) reorder(b.type.shape, b.type.dtype, b.layout, address(buffer), {}, result.raw());
  return b.type.dtype == DType::BF16 ? result.to(DType::F32) : std::move(result);
}

Tensor Plan::prediction() const {
  check(prediction_ >= 0, "plan", "the model function returned no prediction");
  return tensor(prediction_);
}

Tensor Plan::observed(const std::string& name) const {
  const auto found = observed_.find(name);
  check(found != observed_.end(), "plan", "'{}' is not observed by the model function", name);
  return tensor(found->second);
}

std::vector<std::string> Plan::observed_names() const {
  std::vector<std::string> names;
  for (const auto& [name, output] : observed_) names.push_back(name);
  return names;
}

const double* Plan::statistic_sums(std::size_t i) const {
  return static_cast<const double*>(address(assembly_.outputs[static_cast<std::size_t>(statistics_[i])]));
}

bool Plan::is_collective() const {
  return std::ranges::any_of(assembly_.steps, [](const PlanStep& step) { return step.op->is_collective(); });
}

bool Plan::is_finite(std::size_t s) const {
  const std::vector<int>& outputs = assembly_.steps[s].outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const PlanBuffer& b = assembly_.buffers[static_cast<std::size_t>(outputs[i])];
    if (first_nonfinite(arguments_[s].outputs[i], b.type.dtype, b.layout.storage_elements(b.type.shape)) >= 0)
      return false;
  }
  return true;
}

double Plan::flops() const {
  double total = 0;
  for (const PlanStep& step : assembly_.steps) total += step.flops;
  return total;
}

std::size_t Plan::bytes(const PlanStep& step) const {
  std::size_t total = 0;
  for (const auto* list : {&step.inputs, &step.outputs}) {
    for (int b : *list) {
      const PlanBuffer& p = assembly_.buffers[static_cast<std::size_t>(b)];
      total += static_cast<std::size_t>(p.layout.storage_elements(p.type.shape)) * size_of(p.type.dtype);
    }
  }
  return total;
}

std::string Plan::describe() const {
  std::string text;
  std::int64_t reorders = 0;
  for (const PlanStep& step : assembly_.steps) {
    std::string in, out;
    const auto append = [&](std::string& list, int b) {
      const PlanBuffer& p = assembly_.buffers[static_cast<std::size_t>(b)];
      list += fmt::format("{}{}:{}", list.empty() ? "" : " ", p.type.str(), p.layout.str());
    };
    for (int b : step.inputs) append(in, b);
    for (int b : step.outputs) append(out, b);
    std::string remark = step.op->attributes();
    if (!step.reason.empty()) remark = "because " + step.reason;
    reorders += step.op->name() == "reorder" ? 1 : 0;
    text += fmt::format("{:<32} {:<24} {:<12} {:>9.3f} MFLOP {:>9.1f} KiB  {} -> {}{}\n", step.place, step.op->name(),
                        step.offer.implementation, step.flops * 1e-6, static_cast<double>(bytes(step)) / 1024, in, out,
                        remark.empty() ? "" : "  (" + remark + ")");
  }
  return text + fmt::format("{} steps, {} of them reorders, {:.3f} GFLOP, arena {:.1f} MiB, constants {:.1f} MiB\n",
                            assembly_.steps.size(), reorders, flops() * 1e-9,
                            static_cast<double>(arena_bytes_) / 1048576,
                            static_cast<double>(constant_bytes_) / 1048576);
}

std::string Plan::operations() const {
  std::string text;
  for (const PlanStep& step : assembly_.steps) {
    if (step.op->name() == "reorder") continue;
    text += fmt::format("{} {} {}", step.place, step.op->name(), step.op->attributes());
    for (const Type& type : step.output_types) text += fmt::format(" {}", type.shape.str());
    text += '\n';
  }
  return text;
}

}  // namespace lockstep
