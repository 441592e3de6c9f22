#include <fmt/format.h>

#include "models/zoo/registry.h"
#include "tools/commands.h"

namespace lockstep::tools {

void add_models_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "List the models of the zoo");
  command->callback([] {
    for (const models::ModelEntry& e : models::model_table()) {
      fmt::print("{:<16} {:<14} {:>5} classes  {}\n", e.name, e.image.str(), e.classes, e.description);
    }
  });
}

}  // namespace lockstep::tools
