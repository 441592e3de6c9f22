#include "lockstep/plan/compiled_model.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/plan/fusion.h"
#include "lockstep/plan/gradient.h"
#include "lockstep/plan/norm_fusion.h"

namespace lockstep::plan {
namespace {

// The number of samples: the first dimension of every input that is not a scalar.
std::int64_t batch_of(const std::map<std::string, Type>& inputs) {
  const std::string* first = nullptr;
  std::int64_t batch = 0;
  for (const auto& [name, type] : inputs) {
    if (type.shape.rank() == 0) continue;
    if (first == nullptr) {
      first = &name;
      batch = type.shape[0];
    }
    check(type.shape[0] == batch, "model", "inputs differ in their number of samples: '{}' has {}, '{}' has {}", *first,
          batch, name, type.shape[0]);
  }
  return batch;
}

// A kernel reads an id for each row of its value, and the feed writes one for each sample of the batch.
void check_sample_ids(const Graph& graph, const std::map<std::string, Type>& inputs, std::int64_t batch) {
  if (std::ranges::all_of(inputs, [](const auto& input) { return input.second.shape.rank() == 0; })) return;
  for (const Node& node : graph.nodes()) {
    for (const Value v : node.inputs) {
      const Node& from = graph.node(v);
      if (from.kind != Node::Kind::Input || from.path != Graph::kSampleIds) continue;
      const std::int64_t rows = v.shape()[0];
      check(rows == batch, node.op->name(),
            "{}: a value of {} rows in a batch of {} samples; the first dimension must be the samples of the batch, as "
            "each sample has random numbers or an id of its own",
            node.path, rows, batch);
      return;
    }
  }
}

}  // namespace

CompiledModel::CompiledModel(std::vector<NamedParameter> parameters, ModelFunction function,
                             ParameterStoreOptions options, CompileOptions compile)
    : function_(std::move(function)), store_(std::move(parameters), options), options_(std::move(compile)) {
  check(!options_.bf16 || options.dtype == DType::F32, "model", "bf16 needs f32 parameters, these are {}",
        name_of(options.dtype));
}

Plan& CompiledModel::plan(Mode mode, const std::map<std::string, Type>& inputs) {
  std::string key = mode == Mode::Train ? "train" : "eval";
  for (const auto& [name, type] : inputs) key += " " + name + ":" + type.str();
  if (const auto found = plans_.find(key); found != plans_.end()) return *found->second;
  return *plans_.emplace(key, compile(mode, inputs)).first->second;  // a plan that cannot be compiled is not kept
}

std::unique_ptr<Plan> CompiledModel::compile(Mode mode, const std::map<std::string, Type>& inputs) {
  const std::int64_t batch = batch_of(inputs);
  const DType dtype = store_.options().dtype;
  Plan::Source source{
      std::make_unique<Graph>(mode, dtype, store_.options().seed, options_.bf16 ? DType::BF16 : dtype), batch, {}, {}};
  if (mode == Mode::Train) source.graph->bind(options_.synchronisation);
  source.traced = function_(Inputs(*source.graph, inputs));
  check_sample_ids(*source.graph, inputs, batch);
  combine_losses(*source.graph, batch, source.traced);
  for (Value* v : {&source.traced.loss.mean, &source.traced.loss.weight}) {
    if (*v) *v = cast(*v, sum_type(v->dtype()));
  }
  int forward_nodes = static_cast<int>(source.graph->nodes().size());
  if (mode == Mode::Train) {
    source.gradients = append_gradient(*source.graph, source.traced.loss, batch);
    report_unused(source.gradients);
  }
  if (options_.fuse) {
    const GraphRoots roots{source.traced, source.gradients, forward_nodes};
    source.graph = fuse_patterns(*source.graph, roots, options_.fold);
    source.graph = fuse_pointwise(*source.graph, roots);
    if (mode == Mode::Train) source.graph = fuse_norms(*source.graph, roots, options_.kernels);
  }
  if (mode == Mode::Train && options_.recompute != Recompute::None)
    source.graph = recompute(*source.graph, forward_nodes, options_.recompute, source.traced, source.gradients);
  return std::make_unique<Plan>(std::move(source), store_, arena_, options_.kernels, options_.choose);
}

std::size_t CompiledModel::bytes() const {
  std::size_t total = arena_.bytes() + store_.bytes();
  for (const auto& [key, plan] : plans_) total += plan->constant_bytes();
  return total;
}

void CompiledModel::report_unused(const std::vector<ParameterGradient>& gradients) const {
  if (options_.unused == Unused::Ignore) return;
  std::string names;
  int count = 0;
  for (const NamedParameter& p : store_.parameters()) {
    if (!p.parameter->trainable || p.parameter->role == Role::Buffer) continue;
    const bool used = std::ranges::any_of(gradients, [&](const auto& g) { return g.parameter == p.parameter; });
    if (!used && store_.name(p.parameter) == p.name) {
      names += (count++ > 0 ? ", " : "") + p.name;
    }
  }
  check(count == 0, "model",
        "the loss does not depend on {} trainable parameter{}: {}; freeze them or take them out, or allow them to keep "
        "their values (--unused ignore; CompileOptions::unused in a program)",
        count, count == 1 ? "" : "s", names);
}

}  // namespace lockstep::plan
