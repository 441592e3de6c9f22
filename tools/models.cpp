#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "models/zoo/registry.h"
#include "tools/commands.h"

namespace lockstep::tools {
namespace {

void list_models(bool as_json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const models::ModelEntry& e : models::model_table()) {
    if (as_json) {
      list.push_back(
          {{"name", e.name}, {"shape", e.image.dims()}, {"classes", e.classes}, {"description", e.description}});
    } else {
      fmt::print("{:<16} {:<14} {:>5} classes  {}\n", e.name, e.image.str(), e.classes, e.description);
    }
  }
  if (as_json) fmt::print("{}\n", list.dump(1));
}

}  // namespace

void add_models_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "List the models of the zoo");
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "A JSON array: name, shape of a sample, classes, description");
  command->callback([as_json] { list_models(*as_json); });
}

}  // namespace lockstep::tools
