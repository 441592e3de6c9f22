#include "lockstep/checkpoint/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kNamesInMessage = 10;

// A place for a tensor in the store: a parameter's value, or one of its optimizer states. Tied weights are several
// names for one.
struct Place {
  std::string name;
  const Parameter* owner;
  int state;  // -1: the value
  std::function<void(const Tensor&)> write;
};

// What keeps `tensor` from the place; empty: nothing.
std::string mismatch(const Place& place, const Tensor& tensor) {
  if (tensor.shape() != place.owner->shape) {
    return fmt::format("{} {} instead of {}", place.name, tensor.shape().str(), place.owner->shape.str());
  }
  const bool fits = place.owner->is_integer ? tensor.dtype() == DType::I64 : is_floating(tensor.dtype());
  if (fits) return "";
  return fmt::format("{} of {} instead of {}", place.name, name_of(tensor.dtype()),
                     place.owner->is_integer ? "i64" : "f32 or f64");
}

struct Source {
  std::string_view place;  // of errors
  std::string file = {};
};

LoadReport load_places(const std::vector<Place>& places, std::span<const checkpoint::NamedTensor> tensors,
                       const LoadOptions& options, const Source& source) {
  LoadReport report;
  std::map<std::string, const Tensor*> given;
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with(options.prefix)) given[name.substr(options.prefix.size())] = &tensor;
  }
  std::vector<std::pair<const Place*, const Tensor*>> pairs;
  std::set<std::pair<const Parameter*, int>> filled;
  std::set<std::string> known;
  for (const Place& place : places) {
    known.insert(place.name);
    const auto found = given.find(place.name);
    if (found == given.end()) continue;
    if (std::string why = mismatch(place, *found->second); !why.empty()) {
      report.mismatched.push_back(std::move(why));
      continue;
    }
    pairs.emplace_back(&place, found->second);
    filled.emplace(place.owner, place.state);
    report.loaded.push_back(place.name);
  }
  for (const Place& place : places) {
    if (!given.contains(place.name) && !filled.contains({place.owner, place.state}))
      report.missing.push_back(place.name);
  }
  for (const auto& [name, tensor] : tensors) {
    if (!name.starts_with(options.prefix)) continue;
    if (std::string rest = name.substr(options.prefix.size()); !known.contains(rest))
      report.unexpected.push_back(std::move(rest));
  }
  check(!options.strict || report.complete(), source.place, "{}{}{}", source.file, source.file.empty() ? "" : ": ",
        report.str());
  for (const auto& [place, tensor] : pairs) place->write(*tensor);
  return report;
}

void append(std::string& text, const char* kind, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text += fmt::format("; {} {}: ", names.size(), kind);
  const std::size_t shown = std::min(names.size(), kNamesInMessage);
  for (std::size_t i = 0; i < shown; ++i) text += (i > 0 ? ", " : "") + names[i];
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
}

}  // namespace

std::string LoadReport::str() const {
  std::string text =
      fmt::format("{} tensor{} fit{}", loaded.size(), loaded.size() == 1 ? "" : "s", loaded.size() == 1 ? "s" : "");
  append(text, "missing", missing);
  append(text, "unexpected", unexpected);
  append(text, "of another shape or type", mismatched);
  return text;
}

namespace {

LoadReport load_weights(ParameterStore& store, std::span<const checkpoint::NamedTensor> tensors,
                        const LoadOptions& options, const std::string& file) {
  check(store.allocated(), "weights", "the model has no memory yet: compile a plan first");
  std::vector<Place> places;
  for (const NamedParameter& p : store.parameters()) {
    places.push_back(
        {p.name, p.parameter, -1, [&store, name = p.name](const Tensor& tensor) { store.write(name, tensor); }});
  }
  LoadReport report = load_places(places, tensors, options, {.place = "weights", .file = file});
  store.refresh();
  return report;
}

}  // namespace

LoadReport load_weights(ParameterStore& store, std::span<const checkpoint::NamedTensor> tensors,
                        const LoadOptions& options) {
  return load_weights(store, tensors, options, "");
}

LoadReport load_weights(ParameterStore& store, const std::filesystem::path& file, const LoadOptions& options) {
  return load_weights(store, checkpoint::load_weights(file), options, file.string());
}

std::vector<checkpoint::NamedTensor> weights(const ParameterStore& store, const std::string& prefix) {
  std::vector<checkpoint::NamedTensor> tensors;
  for (const NamedParameter& p : store.parameters()) tensors.push_back({prefix + p.name, store.read(p.name)});
  return tensors;
}

std::vector<StateName> state_names(const ParameterStore& store, const optim::UpdateRule& rule) {
  std::vector<StateName> names;
  const auto states = rule.states();
  for (std::size_t s = 0; s < states.size(); ++s) {
    for (const NamedParameter& p : store.parameters()) {
      if (!store.has_gradient(p.parameter) || store.name(p.parameter) != p.name)
        continue;  // tied weights have one state
      names.push_back({std::string(states[s]) + "/" + p.name, p.parameter, p.name, static_cast<int>(s)});
    }
  }
  return names;
}

std::vector<checkpoint::NamedTensor> optimizer_state(const ParameterStore& store, const optim::UpdateRule& rule,
                                                     const std::string& prefix) {
  std::vector<checkpoint::NamedTensor> tensors;
  for (const StateName& s : state_names(store, rule))
    tensors.push_back({prefix + s.name, store.read_state(s.parameter_name, s.state)});
  return tensors;
}

std::vector<StateEntry> state_entries(const ParameterStore& store, const optim::UpdateRule& rule,
                                      const std::string& weights_prefix, const std::string& optimizer_prefix) {
  std::vector<StateEntry> entries;
  const auto bytes = [&](const Parameter* p) {
    return static_cast<std::size_t>(p->shape.elements()) * size_of(store.dtype(p));
  };
  for (const NamedParameter& p : store.parameters()) {
    entries.push_back(
        {weights_prefix + p.name, bytes(p.parameter), false, [&store, name = p.name] { return store.read(name); }});
  }
  for (const StateName& s : state_names(store, rule)) {
    entries.push_back({optimizer_prefix + s.name, bytes(s.parameter), true,
                       [&store, path = s.parameter_name, state = s.state] { return store.read_state(path, state); }});
  }
  return entries;
}

void load_optimizer_state(ParameterStore& store, const optim::UpdateRule& rule,
                          std::span<const checkpoint::NamedTensor> tensors, const std::string& prefix) {
  std::vector<Place> places;
  for (const StateName& s : state_names(store, rule)) {
    places.push_back(
        {s.name, s.parameter, s.state,
         [&store, path = s.parameter_name, state = s.state](const Tensor& t) { store.write_state(path, state, t); }});
  }
  load_places(places, tensors, {.prefix = prefix}, {.place = "optimizer"});
}

}  // namespace lockstep::train
