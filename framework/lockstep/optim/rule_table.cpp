#include "lockstep/optim/rule_table.h"

#include "lockstep/core/error.h"

namespace lockstep::optim {

const RuleEntry& entry_of(Rule rule) {
  for (const RuleEntry& entry : kRules) {
    if (entry.rule == rule) return entry;
  }
  fail("optimizer", "rule {} has no row in the table of rules", static_cast<int>(rule));
}

std::string rule_names(std::string_view option, std::string_view between) {
  std::string names;
  for (const RuleEntry& entry : kRules) {
    if (!option.empty() && !entry.reads(option)) continue;
    if (!names.empty()) names += between;
    names += entry.name;
  }
  return names;
}

std::unique_ptr<UpdateRule> make_rule(const RuleOptions& options) { return entry_of(options.rule).make(options); }

}  // namespace lockstep::optim
