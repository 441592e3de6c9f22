// The command line and option files (--config) of a training program: every row of the options' table, and options of
// the program's own. Errors name the option, its value, and what was expected.
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
  int exit_code = 0;    // for main() where proceed is false: 0 after --help or --version, 2 after an error
  std::string message;  // the error, for a caller that wants the ranks to agree on it; on no rank is it empty then
};

class CommandLine {
 public:
  // The defaults are what `options` holds now; it outlives this. `version` is the answer to --version,
  // `datasets` has the names that --dataset takes; empty: any.
  CommandLine(Options& options, const std::string& name, const std::string& description, const std::string& version,
              data::Catalogue datasets = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // An option of the program's own. Its variable outlives this. A name that is taken makes parse() fail, on all ranks.
  void add(OptionRow row);
  const std::vector<OptionRow>& own() const;  // those that were added
  // `look` is called when all values are known; an Error of it is one of the command line.
  void check(std::function<void()> look);

  // Parses, and settles what depends on which options were given: --batch-size replaces a program's default of
  // --global-batch and the other way round, a change of optimizer without --lr brings that optimizer's usual rate, and
  // an option that the others leave without effect is an error. Help, version and errors are printed by rank 0 alone,
  // once. Call it once.
  ParseResult parse(int argc, const char* const* argv, bool is_rank_zero);
  ParseResult parse(int argc, const char* const* argv, bool is_rank_zero, std::ostream& out, std::ostream& err);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace lockstep::train
