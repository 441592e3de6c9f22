// The `lockstep` command: what can be asked about models and files without training, and `run`, which supervises it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "tools/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Questions about models and files of Lockstep, and supervised training");
  int status = 0;
  app.require_subcommand(1);
  lockstep::tools::add_models_command(app);
  lockstep::tools::add_inspect_command(app);
  lockstep::tools::add_checkpoint_command(app);
  lockstep::tools::add_compare_command(app);
  lockstep::tools::add_run_command(app, status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {
    fmt::print(stderr, "lockstep: {}\n", e.what());
    return 1;
  }
  return status;
}
