#include "models/zoo/click_model.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/nn/init.h"
#include "models/zoo/deepfm.h"
#include "models/zoo/dlrm.h"
#include "models/zoo/two_towers.h"

namespace lockstep::models {

void ClickModel::add_state(const std::string& name, std::int64_t numbers) {
  add(name, Parameter{.shape = {numbers},
                      .initialize = nn::constant(0),
                      .role = Role::Buffer,
                      .trainable = false,
                      .is_integer = true});
}

std::span<const ClickModelEntry> click_models() {
  static const std::vector<ClickModelEntry> table{dlrm_entry(), deepfm_entry(), wide_deep_entry(), two_towers_entry()};
  return table;
}

std::unique_ptr<ClickModel> build_click_model(std::string_view name, const ClickModelConfig& config) {
  const auto table = click_models();
  const auto entry = std::ranges::find(table, name, &ClickModelEntry::name);
  if (entry == table.end()) {
    std::string names;
    for (const ClickModelEntry& known : table) names += formatted("{}{}", names.empty() ? "" : ", ", known.name);
    fail("models", "there is no model '{}' for clicks, expected one of {}", name, names);
  }
  check(config.fields >= 1 && config.rows >= config.fields && config.dense >= 0, name,
        "{} fields of ids, {} rows and {} dense numbers, expected at least 1 field, a row for each and no negative "
        "number",
        config.fields, config.rows, config.dense);
  check(config.dim >= 1 && config.dim <= 4096, name, "rows of {} elements, expected 1 to 4096", config.dim);
  check(config.dropout >= 0 && config.dropout < 1, name, "dropout {}, expected a number in [0, 1)", config.dropout);
  return entry->build(config);
}

}  // namespace lockstep::models
