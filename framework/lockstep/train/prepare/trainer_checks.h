// Checks of a trainer's options that need neither a model nor other ranks: ranges, and options that contradict each
// other. They throw Error at site "trainer". Pure.
#pragma once

#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/train/prepare/trainer_options.h"

namespace lockstep::train {

inline constexpr std::string_view kTrainerSite = "trainer";

// Checks options that have a rule; also that the micro-batches of these fields are not too large.
void check_trainer_options(const TrainerOptions& options, const std::vector<data::Field>& fields, int ranks);
// Checks the options of a model with sparse tables.
void check_table_options(const TrainerOptions& options);

}  // namespace lockstep::train
