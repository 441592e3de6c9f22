// Writes options as text, for checkpoints, the comparison of ranks and the comparison of runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

// Returns an object of all options, by their names on the command line without dashes.
nlohmann::json to_json(std::span<const OptionRow> rows);
nlohmann::json to_json(const Options& options);

// Returns the text of a JSON object with sorted keys that must be equal on all ranks and that checkpoints contain: all
// options except those that may differ between nodes (OptionRow::per_node), and the program's own options, `program`,
// the text of a JSON object ({"depth": 20}).
std::string canonical(const Options& options, std::string_view program = "{}");

// Returns each option that differs between two canonical texts, as "--lr: 0.1 there, 0.2 here"; `there` and `here` name
// the two texts.
std::vector<std::string> differences(std::string_view canonical_there, std::string_view canonical_here,
                                     std::string_view there, std::string_view here);

}  // namespace lockstep::train
