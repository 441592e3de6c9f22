// The command line with which a program evaluates or predicts with the weights of an earlier run: the options of that
// run which say what the model and its data are, then the user's.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep::tools {

struct UseRequest {
  bool predicts = false;                // else it evaluates
  std::filesystem::path weights{};      // the file
  std::filesystem::path predictions{};  // the file of --predict
  std::filesystem::path output{};       // the folder of logs; empty: the program's own
  std::vector<std::string> user{};      // further options, as they were given
};

// Returns the program's name in a checkpoint's metadata. Throws Error at site "weights" with `file` if there is none,
// or if it cannot be the name of a program.
std::string program_of(const nlohmann::json& metadata, const std::string& file);
// Returns the arguments of the program. Throws Error at site "weights" for metadata without options.
std::vector<std::string> arguments_for(const nlohmann::json& metadata, const UseRequest& request);

}  // namespace lockstep::tools
