// The command line with which a program evaluates, predicts or exports its model with the weights of an earlier run:
// the options of that run which say what the model and its data are, then the user's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace lockstep::checkpoint {
struct WeightsSource;
}

namespace lockstep::tools {

struct UseRequest {
  enum class Use : std::uint8_t { Evaluate, Predict, Export };
  Use use = Use::Evaluate;
  std::filesystem::path weights{};  // the file
  std::filesystem::path result{};   // the file of --predict or --onnx
  std::filesystem::path output{};   // the folder of logs; empty: the program's own
  std::vector<std::string> user{};  // further options, as they were given
};

// Returns the program's name in a checkpoint's metadata. Throws Error at site "weights" with `file` if there is none,
// or if it cannot be the name of a program.
std::string program_of(const nlohmann::json& metadata, const std::string& file);
// Returns the arguments of the program. Throws Error at site "weights" for metadata without options.
std::vector<std::string> arguments_for(const nlohmann::json& metadata, const UseRequest& request);

// Replaces this process by the program that wrote the weights, which lie in `source`; `program` names another one,
// unless it is empty. Fills in the request's `weights` and `output`. Throws Error if it cannot be started.
[[noreturn]] void start_program(const checkpoint::WeightsSource& source, const std::string& program,
                                UseRequest request);

}  // namespace lockstep::tools
