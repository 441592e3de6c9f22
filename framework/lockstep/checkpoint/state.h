// Weights and optimizer state as named tensors, in logical order: into files, and from files of this run, of another
// run, or of torchvision. Everything is looked at before anything is written, so a load that throws leaves the store as
// it was. No communication: ranks that load must load the same.
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/io/named_tensor.h"
#include "lockstep/optim/update_rule.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::train {

struct LoadOptions {
  bool strict = true;       // every name with its shape and nothing else; otherwise what fits is taken
  std::string prefix = {};  // only tensors whose name begins with it count, and it is taken off: "module."
};

// Full names, in the order of the model; `unexpected` in the order given. Mismatched ones say how: "fc.weight (1000,
// 512) instead of (10, 512)".
struct LoadReport {
  std::vector<std::string> loaded, missing, unexpected, mismatched;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // One sentence; of each kind the first ten names.
  std::string str() const;
};

// Replaces the values of the store's parameters and buffers, and refreshes derived copies. f32 and f64 convert. Of tied
// weights one name is enough. Throws Error with the report if `strict` and it is not complete.
LoadReport load_weights(ParameterStore& store, std::span<const checkpoint::NamedTensor> tensors,
                        const LoadOptions& options = {});
// From a file that checkpoint::load_weights() reads; errors name it.
LoadReport load_weights(ParameterStore& store, const std::filesystem::path& file, const LoadOptions& options = {});

// All parameters and buffers, in the order of torch's state_dict(): what checkpoint::save_weights() writes.
std::vector<checkpoint::NamedTensor> weights(const ParameterStore& store, const std::string& prefix = "");

// The rule's state of every parameter that has a gradient, as PREFIX STATE/NAME ("momentum/fc.weight"); always strict.
std::vector<checkpoint::NamedTensor> optimizer_state(const ParameterStore& store, const optim::UpdateRule& rule,
                                                     const std::string& prefix);
// The same without values.
struct StateName {
  std::string name;  // "momentum/fc.weight"
  const Parameter* parameter;
  std::string parameter_name;
  int state;
};
std::vector<StateName> state_names(const ParameterStore& store, const optim::UpdateRule& rule);

// The same tensors one by one, so that they need not be in memory together. The store outlives the entries.
struct StateEntry {
  std::string name;
  std::size_t bytes;  // of the tensor
  bool is_optimizer;
  std::function<Tensor()> read;
};
std::vector<StateEntry> state_entries(const ParameterStore& store, const optim::UpdateRule& rule,
                                      const std::string& weights_prefix, const std::string& optimizer_prefix);
void load_optimizer_state(ParameterStore& store, const optim::UpdateRule& rule,
                          std::span<const checkpoint::NamedTensor> tensors, const std::string& prefix);

}  // namespace lockstep::train
