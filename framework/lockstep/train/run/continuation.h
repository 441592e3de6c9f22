// Whether a run may go on from a checkpoint, and where: compares what the checkpoint's metadata says of the run that
// wrote it with what this run is. Both are what Session::metadata() makes. Throws Error naming `place`, the key and
// both values where the run would not train the same samples, or with shards not give the same bits.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

inline constexpr int kMetadataVersion = 1;

struct Continuation {
  std::int64_t step = 0, epoch = 0, offset = 0;  // updates done; samples taken of that epoch
  std::optional<double> schedule_epochs = {};    // after which the learning-rate schedule ended; older files do not say
  std::vector<std::string> notes = {};           // what differs and is allowed: options, machines, libraries
};

// A JSON object, or an Error.
nlohmann::json parse_metadata(const std::string& text, const std::string& place);

Continuation continuation(const nlohmann::json& saved, const nlohmann::json& now, const std::string& place);

// Where the tensors of a checkpoint do not fit the model: which of the program's own options ("depth"), or whether the
// data set, differs between the two, with both values and what to do. Empty: none.
std::string model_difference(const nlohmann::json& saved, const nlohmann::json& now);

}  // namespace lockstep::train
