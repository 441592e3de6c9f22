#include "lockstep/train/step/training_state.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

const std::string kModel(checkpoint::kModelPrefix), kOptimizer = "optimizer/", kGuard = "guard/norms";

// The root's texts on every rank.
void broadcast(const comm::Communicator& comm, std::vector<std::string>& texts) {
  texts.resize(static_cast<std::size_t>(comm.broadcast_value(static_cast<std::int64_t>(texts.size()))));
  for (std::string& text : texts) text = comm.broadcast_string(text);
}

}  // namespace

std::size_t TrainingState::state_bytes() const {
  const ParameterStore& store = model_.parameters();
  std::size_t total = 0;
  for (const NamedParameter& p : store.parameters()) {
    const std::size_t copies = store.has_gradient(p.parameter) ? 1 + updater_->rule().states().size() : 1;
    total += copies * static_cast<std::size_t>(p.parameter->shape.elements()) * size_of(store.dtype(p.parameter));
  }
  return total;
}

Tensor TrainingState::gradient(const std::string& parameter, double weight) {
  model_.parameters().gradient(model_.parameters().find(parameter), 0);  // there is one, or all ranks throw
  engine_->collect_gradients();
  Tensor tensor = model_.parameters().read_gradient(parameter);
  const auto scale = [&]<class T>(T) {
    for (T& v : tensor.data<T>()) v = static_cast<T>(static_cast<double>(v) / weight);
  };
  tensor.dtype() == DType::F64 ? scale(double{}) : scale(float{});
  return tensor;
}

std::vector<checkpoint::NamedTensor> TrainingState::guard_state() {
  std::vector<checkpoint::NamedTensor> tensors;
  if (GradientGuard* guard = engine_->gradient_guard(); guard != nullptr && options_.guards.gradient.spike > 0) {
    const std::span<const double> means = guard->state();
    tensors.push_back({kGuard, Tensor::from<double>(Shape{std::ssize(means)}, means)});
  }
  return tensors;
}

std::vector<checkpoint::NamedTensor> TrainingState::state(bool wanted) {
  engine_->average_replicas();
  engine_->fence();
  engine_->collect_states();
  std::vector<checkpoint::NamedTensor> tensors;
  if (wanted) {
    tensors = weights(model_.parameters(), kModel);
    std::ranges::move(optimizer_state(model_.parameters(), updater_->rule(), kOptimizer), std::back_inserter(tensors));
    std::ranges::move(guard_state(), std::back_inserter(tensors));
  }
  engine_->drop_foreign_states();
  return tensors;
}

std::unique_ptr<StateSnapshot> TrainingState::make_snapshot() {
  return std::make_unique<StateSnapshot>(model_.parameters(), updater_->rule(), kModel, kOptimizer);
}

void TrainingState::snapshot(StateSnapshot* into) {
  engine_->average_replicas();
  engine_->fence();
  engine_->collect_states();
  if (into != nullptr) into->take(guard_state());
  engine_->drop_foreign_states();
}

void TrainingState::load(const std::vector<checkpoint::NamedTensor>& tensors, std::int64_t updates, bool weights_only) {
  engine_->fence();
  engine_->meet();
  comm::collectively(comm_, [&] {
    train::load_weights(model_.parameters(), tensors, {.prefix = kModel});
    if (!weights_only) load_optimizer_state(model_.parameters(), updater_->rule(), tensors, kOptimizer);
  });
  engine_->drop_foreign_states();
  engine_->fence();
  const auto norms = std::ranges::find(tensors, kGuard, &checkpoint::NamedTensor::name);
  if (GradientGuard* guard = engine_->gradient_guard(); guard != nullptr && norms != tensors.end()) {
    const std::span<const double> saved = norms->tensor.data<double>();
    if (saved.size() == guard->state().size()) std::ranges::copy(saved, guard->state().begin());
  }
  updates_ = updates;
}

LoadReport TrainingState::load_weights(const std::filesystem::path& file, const LoadOptions& options) {
  LoadReport report;
  engine_->fence();
  comm::collectively(comm_, [&] {
    if (comm_.is_root()) report = train::load_weights(model_.parameters(), file, options);
  });
  broadcast_weights();
  for (auto* names : {&report.loaded, &report.missing, &report.unexpected, &report.mismatched})
    broadcast(comm_, *names);
  return report;
}

std::uint64_t TrainingState::weights_hash() {
  engine_->fence();
  std::uint64_t hash = 0;
  for (const NamedParameter& p : model_.parameters().parameters()) {
    const Tensor tensor = model_.parameters().read(p.name);
    hash = XXH3_64bits_withSeed(tensor.raw(), tensor.bytes(), hash);
  }
  return hash;
}

std::vector<TensorHash> TrainingState::state_hashes() {
  engine_->fence();
  engine_->collect_states();
  const std::vector<StateEntry> entries = state_entries(model_.parameters(), updater_->rule(), kModel, kOptimizer);
  std::vector<TensorHash> hashes;
  std::vector<std::uint64_t> values(entries.size());
  std::vector<std::size_t> load(static_cast<std::size_t>(world_.size));  // bytes that each rank hashes
  // Ranks that train by themselves for some steps differ, and a collected state is complete on rank 0: it speaks then.
  const bool alike = options_.parallel.local_steps == 1, collected = model_.parameters().options().states_by_owner;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool dealt = alike && !(collected && entries[i].is_optimizer);
    const auto least = dealt ? std::ranges::min_element(load) : load.begin();
    *least += entries[i].bytes;
    hashes.push_back({.name = entries[i].name});
    if (least - load.begin() != world_.rank) continue;
    const Tensor tensor = entries[i].read();
    values[i] = XXH3_64bits(tensor.raw(), tensor.bytes());
  }
  engine_->meet();
  comm_.allreduce(comm::Buffer(std::span(values)), comm::ReduceOp::Sum);  // one rank has it, the others 0
  for (std::size_t i = 0; i < entries.size(); ++i) hashes[i].hash = values[i];
  engine_->drop_foreign_states();
  return hashes;
}

void TrainingState::broadcast_weights() {
  ParameterStore& store = model_.parameters();
  for (const NamedParameter& p : store.parameters()) {
    const std::int64_t elements = store.layout(p.parameter).storage_elements(p.parameter->shape);
    const auto bytes = static_cast<std::size_t>(elements) * size_of(store.dtype(p.parameter));
    const bool common = store.bucket_of(p.parameter) >= 0 && store.memory().shares();
    auto* value = static_cast<std::byte*>(store.value(p.parameter));
    common ? memory_.broadcast_common({value, bytes}) : comm_.broadcast(std::span(value, bytes));
  }
  store.refresh();
  engine_->fence();
}

}  // namespace lockstep::train
