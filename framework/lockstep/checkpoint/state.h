// Weights as named tensors, in logical order: into files, and from files of this run, of another run, or of
// torchvision. Everything is looked at before anything is written, so a load that throws leaves the store as it was. No
// communication: ranks that load must load the same.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/tensor_match.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

struct LoadOptions {
  bool strict = true;       // every name with its shape and nothing else; otherwise what fits is taken
  std::string prefix = {};  // only tensors whose name begins with it count, and it is taken off: "module."
};

// Replaces the values of the store's parameters and buffers, and refreshes derived copies. f32 and f64 convert. Of tied
// weights one name is enough. Throws Error with the report if `strict` and it is not complete.
LoadReport load_weights(plan::ParameterStore& store, std::span<const io::NamedTensor> tensors,
                        const LoadOptions& options = {});
// From a file that checkpoint::load_weights() reads; errors name it.
LoadReport load_weights(plan::ParameterStore& store, const std::filesystem::path& file,
                        const LoadOptions& options = {});

// All parameters and buffers, in the order of torch's state_dict(): what checkpoint::save_weights() writes.
std::vector<io::NamedTensor> weights(const plan::ParameterStore& store, const std::string& prefix = "");

// Where they go; throws Error while the store has no memory.
std::vector<Destination> weight_destinations(plan::ParameterStore& store);

}  // namespace lockstep::checkpoint
