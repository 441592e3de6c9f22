// The file of a model or of a trainer: a checkpoint (checkpoint/file.h) whose metadata has the model's description.
// Tensors: "model/NAME", "optimizer/STATE/NAME" and, by rank, "memory/RANK" (samples as bytes).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bindings/c/sample_memory.h"
#include "lockstep/checkpoint/file.h"

namespace lockstep::bindings {

// The facts in the metadata.
struct StateFacts {
  std::string description{};  // of the model, JSON
  std::string optimizer{};    // name of the rule; empty: the file of a model without training state
  std::int64_t updates = 0;
  std::vector<SampleMemory::Counts> memories{};  // by rank
};

// Returns the name of the tensor with the samples of a rank.
std::string memory_name(int rank);

// Writes the file in place of an old one. Throws Error with the system's reason; then the old file stays.
void save_state(const std::filesystem::path& path, const StateFacts& facts, std::vector<io::NamedTensor> tensors);

// Opens and verifies a file; reads its facts. They throw Error that names the file.
checkpoint::StoredCheckpoint open_state(const std::filesystem::path& path);
StateFacts facts_of(const std::string& metadata, const std::string& path);

}  // namespace lockstep::bindings
