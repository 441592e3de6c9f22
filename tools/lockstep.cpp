// The `lockstep` command: what can be asked about models, files and hosts without training, and `run`, which supervises
// it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lockstep/comm/launch.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/standard_streams.h"
#include "lockstep/host/address_space.h"
#include "lockstep/host/before_libraries.h"
#include "lockstep/host/threads.h"
#include "lockstep/train/options/near_names.h"
#include "lockstep/train/options/option_hints.h"
#include "tools/commands.h"
#include "tools/launcher/command_line.h"
#include "tools/usage.h"

namespace {

using lockstep::printable;

// Adds a command to the program; one with an end of its own sets the program's status.
class Command {
 public:
  constexpr Command(void (*adder)(CLI::App&)) : add_(adder) {}
  constexpr Command(void (*adder)(CLI::App&, int&)) : add_with_status_(adder) {}
  void add(CLI::App& app, int& status) const { add_ != nullptr ? add_(app) : add_with_status_(app, status); }

 private:
  void (*add_)(CLI::App&) = nullptr;
  void (*add_with_status_)(CLI::App&, int&) = nullptr;
};

// In the order of --help.
constexpr Command kCommands[]{lockstep::tools::add_models_command,     lockstep::tools::add_inspect_command,
                              lockstep::tools::add_checkpoint_command, lockstep::tools::add_compare_command,
                              lockstep::tools::add_evaluate_command,   lockstep::tools::add_predict_command,
                              lockstep::tools::add_export_command,     lockstep::tools::add_import_command,
                              lockstep::tools::add_generate_command,   lockstep::tools::add_hosts_command,
                              lockstep::tools::add_logs_command,       lockstep::tools::add_pack_command,
                              lockstep::tools::add_report_command,     lockstep::tools::add_watch_command,
                              lockstep::tools::add_run_command,        lockstep::tools::add_launch_command,
                              lockstep::tools::add_doctor_command,     lockstep::tools::add_completion_command,
                              lockstep::tools::add_man_command};

constexpr int kNothingCompared = 2;  // as `lockstep compare` ends where it has no answer: 1 says that runs differ

// An error that all ranks of `mpirun -n N lockstep evaluate ...` have found is told by rank 0. The others wait: the
// launcher ends them as soon as rank 0 has failed too. A rank that is there after the wait has an error of its own, and
// tells it.
void let_rank_zero_tell(const CLI::App& app) {
  const bool by_ranks = app.got_subcommand("evaluate") || app.got_subcommand("predict");
  if (by_ranks && lockstep::comm::launched_rank() > 0) std::this_thread::sleep_for(std::chrono::seconds(5));
}

int failed(const std::string& text, int status) {
  fmt::print(stderr, "lockstep: {}\n", printable(text));
  return status;
}

// The error of the command line: first a word where a command should be.
std::string explained(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const bool unknown = app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-';
  if (!unknown) return lockstep::train::explain(app, error);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); }))
    names.push_back(command->get_name());
  const std::string near = lockstep::train::nearest_name(argv[1], names);
  return fmt::format("there is no command '{}'{}, expected one of {}", argv[1],
                     near.empty() ? "" : fmt::format("; is it '{}'?", near), fmt::join(names, ", "));
}

// `status`, unless what was printed did not reach stdout.
int finish(const CLI::App& app, int status) {
  const int code = std::fflush(stdout) == 0 ? 0 : errno;
  if (code == 0 && std::ferror(stdout) == 0) return status;
  const std::string reason = code == 0 ? "" : fmt::format(": {}", std::strerror(code));
  return failed("stdout cannot be written" + reason, app.got_subcommand("compare") ? kNothingCompared : 1);
}

}  // namespace

int main(int argc, char** argv) {
  lockstep::host::keep_hangup_ignored();
  try {
    lockstep::open_standard_streams();
  } catch (const std::exception&) {
    return 1;  // there is no stream for a message
  }
  CLI::App app("Questions about models and files of Lockstep, and supervised training");
  int status = 0;
  app.require_subcommand(1);
  app.set_version_flag("--version", "lockstep (Lockstep " LOCKSTEP_VERSION ")");
  for (const Command& command : kCommands) command.add(app, status);
  // `lockstep help run` is `lockstep run --help`, and `lockstep help` is `lockstep --help`.
  std::vector<char*> words(argv, argv + argc);
  static char help[] = "--help";
  const bool asks_help = argc > 1 && std::string_view(argv[1]) == "help";
  if (asks_help) {
    words.erase(words.begin() + 1);
    words.push_back(help);
  }
  argc = static_cast<int>(words.size());
  words.push_back(nullptr);
  argv = words.data();
  try {
    lockstep::host::leave_first_place();  // mpirun and ranks, which this program starts, would inherit one core
    app.parse(lockstep::launcher::adapt_words(*app.get_subcommand("launch"), argc, argv), argv);
  } catch (const CLI::RuntimeError& e) {  // a command's own status
    status = e.get_exit_code();
  } catch (const CLI::Success& e) {  // --help, --version
    std::ostringstream text;
    app.exit(e, text, text);
    std::fputs(text.str().c_str(), stdout);  // a failure is found at the end
  } catch (const CLI::ParseError& e) {
    let_rank_zero_tell(app);
    if (argc == 1) fmt::print(stderr, "{}\n", app.help());
    fmt::print(stderr, "lockstep: {}\nRun with --help for more information.\n",
               printable(explained(app, e, argc, argv)));
    if (app.got_subcommand("run"))
      fmt::print(stderr,
                 "The job's command comes after --, as in: lockstep run [OPTIONS] -- mpirun -n 2 PROGRAM ...\n");
    return lockstep::kExitCommandLine;
  } catch (const lockstep::tools::UsageError& e) {
    let_rank_zero_tell(app);
    return failed(e.what(), lockstep::kExitCommandLine);
  } catch (const std::exception& e) {
    let_rank_zero_tell(app);
    if (std::ferror(stdout) == 0) return failed(lockstep::host::explain(e), 1);
    status = 1;  // a long text is written before its end
  }
  return finish(app, status);
}
