// Decides whether a run may resume from a checkpoint, and at which position: compares the metadata of the run that
// wrote the checkpoint with those of this run (run_metadata.h). Throws Error with `file`, the key and both values if
// the run would not train the same samples or, with shards, would not give the same bits.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

inline constexpr int kMetadataVersion = 1;
// In the record of the data (data::PredictionFacts::record): an object with the program's own options, and their
// values, by which its samples are what they are. With other values a run does not resume.
inline constexpr const char* kDefiningOptions = "options";

struct Continuation {
  std::int64_t step = 0, epoch = 0, offset = 0;  // updates done; epoch from 0; samples of this epoch that are trained
  std::optional<double> schedule_epochs = {};    // length of the learning-rate schedule; empty in older files
  std::vector<std::string> notes = {};           // allowed differences: options, machines, libraries
};

// Parses metadata; throws Error with `file` if the text is not a JSON object.
nlohmann::json parse_metadata(const std::string& text, const std::string& file);

// `change_bits`: the run may promise other bits than the one before (--change-bits).
Continuation continuation(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file,
                          bool change_bits = false);

// Explains why the tensors of a checkpoint do not fit the model: returns the program's own option ("depth") or the data
// set that differs between the two, with both values and what to do; empty: no difference.
std::string model_difference(const nlohmann::json& saved, const nlohmann::json& now);

}  // namespace lockstep::train
