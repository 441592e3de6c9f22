#include "lockstep/checkpoint/training_state.h"

#include "lockstep/checkpoint/state.h"
#include "lockstep/checkpoint/weights.h"

namespace lockstep::checkpoint {

TrainingState::TrainingState(plan::ParameterStore& store, const optim::UpdateRule& rule) : store_(store) {
  const bool shares = store.memory().shares();
  const auto add = [&](std::string name, const NamedParameter& p, int state, bool shared) {
    entries_.push_back({.info = {std::move(name), p.parameter->shape, store.dtype(p.parameter)},
                        .parameter = p.parameter,
                        .parameter_name = p.name,
                        .state = state,
                        .shared = shared});
  };
  for (const NamedParameter& p : store.parameters())
    add(std::string(checkpoint::kModelPrefix) + p.name, p, -1, shares && store.has_gradient(p.parameter));
  const auto states = rule.states();
  for (std::size_t s = 0; s < states.size(); ++s) {
    const std::string prefix = formatted("{}{}/", kOptimizerPrefix, states[s]);
    for (const NamedParameter& p : store.parameters()) {
      if (!store.has_gradient(p.parameter) || store.name(p.parameter) != p.name) continue;  // tied weights
      add(prefix + p.name, p, static_cast<int>(s), shares && !store.options().states_by_owner);
    }
  }
}

std::size_t TrainingState::bytes() const {
  std::size_t total = 0;
  for (const Entry& entry : entries_) total += entry.info.bytes();
  return total;
}

Tensor TrainingState::read(const Entry& entry) const {
  return entry.is_optimizer() ? store_.read_state(entry.parameter_name, entry.state)
                              : store_.read(entry.parameter_name);
}

std::vector<io::NamedTensor> TrainingState::read() const {
  std::vector<io::NamedTensor> tensors;
  for (const Entry& entry : entries_) tensors.push_back({entry.info.name, read(entry)});
  return tensors;
}

TrainingState::Match TrainingState::match(std::span<const io::TensorInfo> tensors, bool weights_only) {
  const std::string model(checkpoint::kModelPrefix), optimizer(kOptimizerPrefix);
  Match found{.weights = match_tensors(weight_destinations(store_), tensors, model)};
  found.weights.report.require_complete("weights");
  if (weights_only) return found;
  std::vector<Destination> destinations;
  for (const Entry& entry : entries_) {
    if (!entry.is_optimizer()) continue;
    destinations.push_back(
        {entry.info.name.substr(optimizer.size()), entry.parameter, entry.state,
         [this, &entry](const Tensor& tensor) { store_.write_state(entry.parameter_name, entry.state, tensor); }});
  }
  found.states = match_tensors(destinations, tensors, optimizer);
  found.states.report.require_complete("optimizer");
  return found;
}

void TrainingState::write(const Match& found, const io::TensorSource& source) {
  write_tensors(store_, found.weights, source);
  write_tensors(store_, found.states, source);
  store_.refresh();
}

void TrainingState::load(const io::TensorSource& source, bool weights_only) {
  write(match(source.infos, weights_only), source);
}

}  // namespace lockstep::checkpoint
