// Loads and saves weights as named tensors in logical order. Files may come from this run, another run, or torchvision.
// A load checks all names and shapes before it writes, so a load that throws leaves the store unchanged. There is no
// communication: ranks that share a model must load the same tensors. One thread per store.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/checkpoint/load_report.h"
#include "lockstep/checkpoint/tensor_match.h"
#include "lockstep/io/named_tensor.h"
#include "lockstep/io/tensor_source.h"
#include "lockstep/plan/parameter_store.h"

namespace lockstep::checkpoint {

// Replaces the values of the store's parameters and buffers, and refreshes derived copies. Converts between f32 and
// f64. One name is enough for tied weights. Returns the report; throws Error with it if `strict` and the report is not
// complete.
LoadReport load_weights(plan::ParameterStore& store, std::span<const io::NamedTensor> tensors,
                        const LoadOptions& options = {});
// The same, tensor by tensor in the source's order; `file` names it in errors.
LoadReport load_weights(plan::ParameterStore& store, const io::TensorSource& tensors, const LoadOptions& options,
                        const std::string& file);
// Its two steps, for a caller that loads other tensors too: finds what is to be written, and throws the Error of a
// strict load; then writes it.
TensorMatch match_weights(plan::ParameterStore& store, std::span<const io::TensorInfo> tensors,
                          const LoadOptions& options, const std::string& file);
void write_weights(plan::ParameterStore& store, const TensorMatch& match, const io::TensorSource& tensors);
// The same as load_weights() from a file that WeightsFile can read; errors name the file.
LoadReport load_weights(plan::ParameterStore& store, const std::filesystem::path& file,
                        const LoadOptions& options = {});

// Returns copies of all parameters and buffers, in the order of torch's state_dict(), each name with `prefix` in front.
// checkpoint::save_weights() writes them to a file.
std::vector<io::NamedTensor> weights(const plan::ParameterStore& store, const std::string& prefix = "");

// Returns the destinations of these tensors in the store; throws Error while the store has no memory.
std::vector<Destination> weight_destinations(plan::ParameterStore& store);

}  // namespace lockstep::checkpoint
