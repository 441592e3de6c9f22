#include "lockstep/train/state/trainer_state.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "lockstep/checkpoint/training_state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/train/state/tensor_broadcast.h"

namespace lockstep::train {
namespace {

const std::string kGuard = "guard/norms", kNoise = "noise/means";

// Returns the root's texts on every rank.
void broadcast(const comm::Communicator& comm, std::vector<std::string>& texts) {
  texts.resize(static_cast<std::size_t>(comm.broadcast_value(static_cast<std::int64_t>(texts.size()))));
  for (std::string& text : texts) text = comm.broadcast_string(text);
}

}  // namespace

std::size_t TrainerState::state_bytes() const {
  std::size_t bytes = checkpoint::TrainingState(model_.parameters(), updater_->rule()).bytes();
  for (const io::NamedTensor& tensor : further_state()) bytes += tensor.tensor.bytes();
  return bytes + tables_.bytes();
}

Tensor TrainerState::gradient(const std::string& parameter, double weight) {
  model_.parameters().gradient(model_.parameters().find(parameter), 0);  // throws on all ranks if there is none
  engine_->collect_gradients();
  Tensor tensor = model_.parameters().read_gradient(parameter);
  const auto scale = [&]<class T>(T) {
    for (T& v : tensor.data<T>()) v = static_cast<T>(static_cast<double>(v) / weight);
  };
  tensor.dtype() == DType::F64 ? scale(double{}) : scale(float{});
  return tensor;
}

std::span<const double> TrainerState::guard_norms() const {
  parallel::GradientGuard* guard = engine_->gradient_guard();
  if (guard == nullptr || options_.guards.gradient.spike <= 0) return {};
  return guard->state();
}

std::vector<io::NamedTensor> TrainerState::further_state() const {
  std::vector<io::NamedTensor> tensors = averages_.state();
  if (options_.noise_scale) {
    const std::span<const double> means = noise_.state();
    tensors.push_back({kNoise, Tensor::from<double>(Shape{std::ssize(means)}, means)});
  }
  if (const std::span<const double> norms = guard_norms(); !norms.empty())
    tensors.push_back({kGuard, Tensor::from<double>(Shape{std::ssize(norms)}, norms)});
  return tensors;
}

std::vector<io::NamedTensor> TrainerState::state(bool wanted) {
  engine_->average_replicas();
  engine_->fence();
  engine_->collect_states();
  std::vector<io::NamedTensor> tensors;
  try {
    comm::collectively(comm_, [&] {  // memory may be short where the state is wanted
      if (!wanted) return;
      tensors = checkpoint::TrainingState(model_.parameters(), updater_->rule()).read();
      std::ranges::move(further_state(), std::back_inserter(tensors));
    });
  } catch (const comm::AgreedError&) {
    engine_->drop_foreign_states();
    throw;
  }
  std::ranges::move(tables_.read(wanted), std::back_inserter(tensors));
  engine_->drop_foreign_states();
  return tensors;
}

std::unique_ptr<checkpoint::StateSnapshot> TrainerState::make_snapshot() {
  return std::make_unique<checkpoint::StateSnapshot>(model_.parameters(),
                                                     checkpoint::TrainingState(model_.parameters(), updater_->rule()));
}

void TrainerState::snapshot(checkpoint::StateSnapshot* into, const TableSave& tables) {
  engine_->average_replicas();
  engine_->fence();
  engine_->collect_states();
  std::vector<io::NamedTensor> further;
  if (tables.take) {
    tables_.save(tables);
  } else {
    further = tables_.read(into != nullptr);
  }
  if (into != nullptr) {
    std::ranges::move(further_state(), std::back_inserter(further));
    into->take(std::move(further));
  }
  engine_->drop_foreign_states();
}

void TrainerState::begin_load() {
  engine_->fence();
  engine_->meet();
}

void TrainerState::load(const std::vector<io::NamedTensor>& tensors, std::int64_t updates, bool weights_only) {
  begin_load();
  load_from(io::source_of(tensors), updates, weights_only, [] {});
}

void TrainerState::load(const io::TensorSource& of_root, const std::string& file, std::int64_t updates) {
  begin_load();
  std::set<std::string> shared;
  const checkpoint::TrainingState state(model_.parameters(), updater_->rule());
  for (const checkpoint::TrainingState::Entry& entry : state.entries()) {
    if (entry.shared) shared.insert(entry.info.name);
  }
  TensorBroadcast broadcast(comm_, memory_, of_root, [&](const std::string& name) { return shared.contains(name); });
  load_from(broadcast.tensors(), updates, false, [&] { broadcast.check_received(file); });
}

void TrainerState::load_from(const io::TensorSource& source, std::int64_t updates, bool weights_only,
                             const std::function<void()>& check_received) {
  std::vector<io::NamedTensor> further;
  comm::collectively(comm_, [&] {
    // All is matched before anything is written.
    checkpoint::TrainingState state(model_.parameters(), updater_->rule());
    const io::TensorSource dense = tables_.without_tables(source);
    const checkpoint::TrainingState::Match found = state.match(dense.infos, weights_only);
    const TableState::Match rows = tables_.match(source.infos, weights_only);
    if (!weights_only) averages_.require(source.infos);
    state.write(found, dense);
    tables_.load(source, rows, weights_only);
    for (std::size_t i = 0; i < source.infos.size(); ++i) {
      const std::string& name = source.infos[i].name;
      if (name == kGuard || name == kNoise || name.starts_with(checkpoint::kAveragePrefix))
        further.push_back({name, source.tensor(i).tensor.clone()});
    }
    check_received();
    if (!weights_only) averages_.load(further);
  });
  engine_->drop_foreign_states();
  engine_->fence();
  model_.parameters().refresh_own_copies();  // another rank of the node may have written the values
  if (weights_only) {
    averages_.begin();
  } else {
    load_further(further);
  }
  updates_ = updates;
}

// A checkpoint of a run without guard or noise has no means for them: they begin anew, also where a run goes back to
// it.
void TrainerState::load_further(const std::vector<io::NamedTensor>& tensors) {
  const auto load = [&](const std::string& name, std::span<double> into) {
    const auto found = std::ranges::find(tensors, name, &io::NamedTensor::name);
    if (found != tensors.end() && found->tensor.dtype() == DType::F64 &&
        std::cmp_equal(found->tensor.elements(), into.size()))
      std::ranges::copy(found->tensor.data<double>(), into.begin());
    else
      std::ranges::fill(into, 0.0);
  };
  if (parallel::GradientGuard* guard = engine_->gradient_guard(); guard != nullptr) load(kGuard, guard->state());
  if (options_.noise_scale) load(kNoise, noise_.state());
}

checkpoint::LoadReport TrainerState::load_weights(const std::filesystem::path& file,
                                                  const checkpoint::LoadOptions& options) {
  checkpoint::LoadReport report;
  engine_->fence();
  std::optional<checkpoint::WeightsFile> stored;  // on rank 0, as the variables that follow
  io::TensorSource tensors, others;
  std::vector<TableState::Stored> rows;
  checkpoint::TensorMatch dense;
  comm::collectively(comm_, [&] {  // before anything changes
    if (!comm_.is_root()) return;
    tensors = stored.emplace(file).tensors();
    rows = tables_.match_weights(tensors.infos, options, file.string(), report);
    others = tables_.without_weights(tensors, options.prefix);
    dense = checkpoint::match_weights(model_.parameters(), others.infos, options, file.string());
  });
  tables_.load_weights(comm_, tensors, rows);
  comm::collectively(comm_, [&] {
    if (!comm_.is_root()) return;
    checkpoint::write_weights(model_.parameters(), dense, others);
    const checkpoint::LoadReport of_tables = std::exchange(report, dense.report);
    for (const auto names : {&checkpoint::LoadReport::loaded, &checkpoint::LoadReport::missing,
                             &checkpoint::LoadReport::mismatched, &checkpoint::LoadReport::skipped})
      std::ranges::copy(of_tables.*names, std::back_inserter(report.*names));
  });
  broadcast_weights();
  for (auto* names : {&report.loaded, &report.missing, &report.unexpected, &report.mismatched, &report.skipped})
    broadcast(comm_, *names);
  return report;
}

// Large tables take minutes, in which a watchdog must see that this rank moves.
void TrainerState::beat() {
  if (options_.heartbeat != nullptr) options_.heartbeat->beat();
}

std::uint64_t TrainerState::weights_hash() {
  engine_->fence();
  std::uint64_t hash = 0;
  for (const NamedParameter& p : model_.parameters().parameters()) {
    const Tensor tensor = model_.parameters().read(p.name);
    hash = XXH3_64bits_withSeed(tensor.raw(), tensor.bytes(), hash);
    beat();
  }
  for (const TableState::Piece& piece : tables_.pieces()) {
    if (piece.tensor->part >= 0) continue;
    const Tensor tensor = tables_.read(piece, true);  // on the root at least
    if (!tensor.empty()) hash = XXH3_64bits_withSeed(tensor.raw(), tensor.bytes(), hash);
    beat();
  }
  if (tables_.pieces().empty()) return hash;
  engine_->meet();
  return comm_.broadcast_value(hash);
}

std::vector<TensorHash> TrainerState::state_hashes() {
  engine_->fence();
  engine_->collect_states();
  const checkpoint::TrainingState state(model_.parameters(), updater_->rule());
  const std::vector<checkpoint::TrainingState::Entry>& entries = state.entries();
  std::vector<TensorHash> hashes;
  std::vector<std::uint64_t> values(entries.size());
  std::vector<std::size_t> load(static_cast<std::size_t>(world_.size));  // bytes that each rank hashes
  // Ranks that train alone for some steps differ, and a collected state is complete only on rank 0: it hashes all then.
  const bool alike = options_.parallel.local_steps == 1, collected = model_.parameters().options().states_by_owner;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool dealt = alike && !(collected && entries[i].is_optimizer());
    const auto least = dealt ? std::ranges::min_element(load) : load.begin();
    *least += entries[i].info.bytes();
    hashes.push_back({.name = entries[i].info.name});
    if (least - load.begin() != world_.rank) continue;
    const Tensor tensor = state.read(entries[i]);
    values[i] = XXH3_64bits(tensor.raw(), tensor.bytes());
    beat();
  }
  for (const TableState::Piece& piece : tables_.pieces()) {
    const Tensor tensor = tables_.read(piece, comm_.is_root());
    hashes.push_back({.name = piece.info.name});
    values.push_back(comm_.is_root() ? XXH3_64bits(tensor.raw(), tensor.bytes()) : 0);
    beat();
  }
  engine_->meet();
  comm_.allreduce(comm::Buffer(std::span(values)), comm::ReduceOp::Sum);  // one rank has the hash, the others 0
  for (std::size_t i = 0; i < hashes.size(); ++i) hashes[i].hash = values[i];
  engine_->drop_foreign_states();
  return hashes;
}

void TrainerState::broadcast_weights() {
  plan::ParameterStore& store = model_.parameters();
  for (const NamedParameter& p : store.parameters()) {
    const std::int64_t elements = store.layout(p.parameter).storage_elements(p.parameter->shape);
    const auto bytes = static_cast<std::size_t>(elements) * size_of(store.dtype(p.parameter));
    const bool common = store.bucket_of(p.parameter) >= 0 && store.memory().shares();
    auto* value = static_cast<std::byte*>(store.value(p.parameter));
    common ? memory_.broadcast_common({value, bytes}) : comm_.broadcast(std::span(value, bytes));
  }
  store.refresh();
  engine_->fence();
  averages_.begin();
}

}  // namespace lockstep::train
