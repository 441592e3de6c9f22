// The options and commands of a program's command line, taken from the parser that reads it: the source of completions
// (completion.h) and man pages (man_page.h). Hidden options and commands are left out.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace lockstep::train {

struct OptionDescription {
  std::vector<std::string> names = {};   // with their dashes; of a positional argument its one name without
  std::string argument = {};             // the word for its value, "N" or "FILE"; empty: a flag, which takes none
  std::vector<std::string> values = {};  // the only values that it takes; empty: others
  bool is_number = false;                // its value is a number
  std::string text = {};
  std::string group = {};  // the heading in --help
  bool is_positional = false, is_required = false;
};

struct ProgramDescription {
  std::string name = {};            // of the program, or of the command of one
  std::string text = {};            // one sentence
  std::string footer = {};          // the lines below the options in --help
  bool takes_command_line = false;  // the words from some point on are another program and its arguments
  std::vector<OptionDescription> options = {};
  std::vector<ProgramDescription> commands = {};
};

// Describes `app` and its commands.
ProgramDescription describe(const CLI::App& app);

}  // namespace lockstep::train
