// Options as text: for checkpoints, for the comparison of ranks, and for the comparison of runs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

// Options by the names of the command line, without the dashes.
nlohmann::json to_json(std::span<const OptionRow> rows);
nlohmann::json to_json(const Options& options);

// Text that must be the same on all ranks and that checkpoints keep: all options but those a node may set for itself
// (OptionRow::per_node); with the program's own added, the text of a JSON
// object ({"depth": 20}). Keys are sorted.
std::string canonical(const Options& options, std::string_view program = "{}");

// Each option in which two canonical texts differ, as "--lr: 0.1 there, 0.2 here"; `there` and `here` say whose.
std::vector<std::string> differences(std::string_view canonical_there, std::string_view canonical_here,
                                     std::string_view there, std::string_view here);

}  // namespace lockstep::train
