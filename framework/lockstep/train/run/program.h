// The frame of a training program's main(): MPI, command line, and errors that end all ranks with one message and a
// non-zero status.
//
//   int main(int argc, char** argv) {
//     train::Program program("train_toy", "Trains a small network.", {.dataset = "cifar10", .epochs = 10},
//                            datasets::catalogue());
//     program.cli().add_option(...);
//     return program.run(argc, argv, [](train::Session& session) { ... });
//   }
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "lockstep/data/catalogue.h"
#include "lockstep/train/options/option_checks.h"
#include "lockstep/train/options/options.h"
#include "lockstep/train/run/session.h"

namespace lockstep::train {

class Program {
 public:
  // --help shows `defaults`; --dataset takes the names of `catalogue`.
  Program(std::string name, std::string description, Options defaults, data::Catalogue catalogue);

  CLI::App& cli() { return app_; }
  // An option of the program's own, which ranks must agree on and checkpoints remember. `value` outlives run().
  template <class T>
  CLI::Option* option(const std::string& name, T& value, const std::string& text) {
    own_.push_back([name, &value](nlohmann::json& json) { json[name] = value; });
    CLI::Option* added = app_.add_option("--" + name, value, fmt::format("{} (default {})", text, value))
                             ->type_name(std::is_arithmetic_v<T> ? "N" : "WHAT")
                             ->take_last()
                             ->group("Model");
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) added->check(whole_number<T>);
    if constexpr (std::is_floating_point_v<T>) added->check(number);
    return added;
  }

  // First thing in main(): the process may start again, with settings that OpenMP reads when it is loaded
  // (host/process_settings.h). Returns main()'s status: 0, 1 after an error, 2 for a command line that is wrong,
  // 75 after it was asked to stop (train/run/requests.h).
  int run(int argc, char** argv, const std::function<void(Session&)>& body);

 private:
  bool print(const std::string& out, const std::string& err) const;
  void say(const std::string& text) const;
  void check_same_program(const comm::Communicator& world) const;
  std::optional<int> agree(const comm::Communicator& world, const ParseResult& parsed) const;

  std::string name_;
  Options options_;
  data::Catalogue catalogue_;
  CLI::App app_;
  std::vector<std::function<void(nlohmann::json&)>> own_;
};

}  // namespace lockstep::train
