// The `lockstep` command: what can be asked about models and files without training, and `run`, which supervises it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "lockstep/core/address_space.h"
#include "lockstep/core/exit_status.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/standard_streams.h"
#include "lockstep/train/option_hints.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  try {
    lockstep::open_standard_streams();
  } catch (const std::exception&) {
    return 1;  // nobody can be told
  }
  CLI::App app("Questions about models and files of Lockstep, and supervised training");
  int status = 0;
  app.require_subcommand(1);
  app.set_version_flag("--version", "lockstep (Lockstep " LOCKSTEP_VERSION ")");
  lockstep::tools::add_models_command(app);
  lockstep::tools::add_inspect_command(app);
  lockstep::tools::add_checkpoint_command(app);
  lockstep::tools::add_compare_command(app);
  lockstep::tools::add_run_command(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RuntimeError& e) {  // a command's own status
    return e.get_exit_code();
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "lockstep: {}\nRun with --help for more information.\n",
               lockstep::printable(lockstep::train::explain(app, e)));
    if (app.got_subcommand("run"))
      fmt::print(stderr,
                 "The job's command comes after --, as in: lockstep run [OPTIONS] -- mpirun -n 2 PROGRAM ...\n");
    return lockstep::kExitCommandLine;
  } catch (const std::exception& e) {
    fmt::print(stderr, "lockstep: {}\n", lockstep::printable(lockstep::explain(e)));
    return 1;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fmt::print(stderr, "lockstep: stdout cannot be written: {}\n", std::strerror(errno));
    return 1;
  }
  return status;
}
