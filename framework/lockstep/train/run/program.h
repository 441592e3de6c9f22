// The main() of a training program: starts MPI, parses the command line, and turns errors into one message and a
// non-zero exit status of all ranks.
//
//   int main(int argc, char** argv) {
//     train::Program program("train_toy", "Trains a small network.", {.dataset = {.name = "cifar10"}, .epochs = 10},
//                            datasets::catalogue());
//     program.option("depth", depth, "layers");
//     return program.run(argc, argv, [](train::Session& session) { ... });
//   }
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/train/options/command_line.h"
#include "lockstep/train/run/session.h"

namespace lockstep::train {

class Program {
 public:
  // `defaults` are the options' defaults; --dataset accepts the names of `catalogue`, which must outlive this object.
  Program(std::string name, const std::string& description, Options defaults, data::Catalogue catalogue);
  ~Program();

  // Adds an option of the program's own: a number, a text, a flag, or an enumeration with Choices
  // (train/options/option_value.h). All ranks must have equal values, and checkpoints contain them. A text must be one
  // of `names`, if there are any, of which "*.onnx" stands for files; `argument` stands for another text in --help.
  // `value` is the default and must outlive run().
  template <class T>
  void option(const std::string& name, T& value, const std::string& text, const std::vector<std::string>& names = {},
              const std::string& argument = {}) {
    command_line_->add({.name = name,
                        .value = option_value(value),
                        .argument = argument,
                        .text = text,
                        .low = -kMaxCount,
                        .names = names,
                        .shapes_model = true});
  }
  // The options, which have their values once the command line is parsed: for checks, which may set what follows.
  Options& options() { return options_; }
  // Registers a check that is called after the command line is parsed; its Error is an error of the command line.
  void check(std::function<void()> look) { command_line_->check(std::move(look)); }

  // Adds a callback to the session (Session::add()).
  void add(std::unique_ptr<Callback> callback);
  template <class C, class... Arguments>
  void add(Arguments&&... arguments) {
    add(std::make_unique<C>(std::forward<Arguments>(arguments)...));
  }

  // Runs the program with a session. Call it first in main(): the process may restart itself with settings that OpenMP
  // reads when it is loaded (host/process_settings.h). Returns main()'s status: 0; 1 after an error; 2 for a wrong
  // command line; 75 after a request to stop (train/monitor/requests.h).
  int run(int argc, char** argv, const std::function<void(Session&)>& body);

 private:
  bool print(const std::string& out, const std::string& err) const;
  void say(const std::string& text) const;
  std::optional<int> agree(const comm::Communicator& world, const ParseResult& parsed) const;

  std::string name_;
  data::Catalogue catalogue_;
  Options options_;
  std::unique_ptr<CommandLine> command_line_;  // reads into options_
  std::vector<std::unique_ptr<Callback>> callbacks_;
};

}  // namespace lockstep::train
