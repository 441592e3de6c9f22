// The options that a command line gives, beside each other: one sets what is usual for another, and one without effect
// is refused, as it is probably a mistake. All throw CLI::ValidationError with the option's name.
#pragma once

#include "lockstep/optim/rule_options.h"
#include "lockstep/train/options/options_table.h"

namespace CLI {
class App;
}

namespace lockstep::train {

// Refuses empty values: --resume "$LAST" with an unset LAST must not count as no option.
void refuse_empty_text(const CLI::App& app, const OptionRow& row);

// Sets what follows from the options given, such as the usual rate of an optimizer other than `default_rule`, and
// refuses those without effect.
void settle(const CLI::App& app, Options& options, optim::Rule default_rule);

}  // namespace lockstep::train
