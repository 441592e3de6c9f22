#include "bindings/c/state_file.h"

#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"

namespace lockstep::bindings {
namespace {

constexpr std::int64_t kVersion = 1;  // of the metadata

}  // namespace

std::string memory_name(int rank) { return formatted("memory/{}", rank); }

void save_state(const std::filesystem::path& path, const StateFacts& facts, std::vector<io::NamedTensor> tensors) {
  nlohmann::json memories = nlohmann::json::array();
  for (const SampleMemory::Counts& counts : facts.memories)
    memories.push_back({{"offered", counts.offered}, {"drawn", counts.drawn}});
  const nlohmann::json metadata{{"lockstep_c", kVersion},
                                {"description", nlohmann::json::parse(facts.description)},
                                {"optimizer", facts.optimizer},
                                {"updates", facts.updates},
                                {"memories", std::move(memories)}};
  checkpoint::save(path, checkpoint::Checkpoint{.tensors = std::move(tensors), .metadata = metadata.dump()});
}

checkpoint::StoredCheckpoint open_state(const std::filesystem::path& path) { return checkpoint::open_checkpoint(path); }

StateFacts facts_of(const std::string& metadata, const std::string& path) {
  try {
    const nlohmann::json json = nlohmann::json::parse(metadata);
    check(json.value("lockstep_c", std::int64_t{0}) == kVersion, "state",
          "{}: the file has no description of a model of lockstep_c.h; it is a checkpoint of another program, or of a "
          "later version",
          path);
    StateFacts facts{.description = json.at("description").dump(),
                     .optimizer = json.at("optimizer").get<std::string>(),
                     .updates = json.at("updates").get<std::int64_t>()};
    for (const nlohmann::json& counts : json.at("memories"))
      facts.memories.push_back({counts.at("offered").get<std::int64_t>(), counts.at("drawn").get<std::int64_t>()});
    return facts;
  } catch (const nlohmann::json::exception& error) {
    fail("state", "{}: the metadata cannot be read: {}", path, error.what());
  }
}

}  // namespace lockstep::bindings
