// The command line and option files (--config) of a training program: all rows of the options' table, and the program's
// own options. Errors name the option, its value and the expectation. One thread.
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

struct ParseResult {
  bool proceed = true;
  int exit_code = 0;    // main()'s status if `proceed` is false: 0 after --help or --version, 2 after an error
  std::string message;  // the error, for a caller that lets the ranks agree on it; not empty after an error
};

class CommandLine {
 public:
  // Makes a parser that writes to `options`, which must outlive this object; its present values are the defaults.
  // `version` is the answer to --version; `datasets` has the names that --dataset accepts, empty: any name.
  CommandLine(Options& options, const std::string& name, const std::string& description, const std::string& version,
              data::Catalogue datasets = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Adds an option of the program's own. Its variable must outlive this object. If the name is used already, parse()
  // fails on all ranks.
  void add(OptionRow row);
  const std::vector<OptionRow>& own() const;  // the options of add()
  // Registers a check that is called when all values are known; its Error is an error of the command line.
  void check(std::function<void()> look);

  // Parses the command line and sets values that depend on the given options: --batch-size replaces a program's default
  // of --global-batch and vice versa; a change of optimizer without --lr sets that optimizer's usual rate; a default
  // of --warmup-epochs longer than --epochs is shortened, and one-cycle, which rises by itself, has none; an option
  // that has no effect beside other options is an error. Rank 0 alone prints help, version and errors. Call it once.
  ParseResult parse(int argc, const char* const* argv, bool is_rank_zero);
  ParseResult parse(int argc, const char* const* argv, bool is_rank_zero, std::ostream& out, std::ostream& err);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace lockstep::train
