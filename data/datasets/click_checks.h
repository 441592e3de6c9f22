// Checks of the options for samples of click models that need no data: ranges, options that contradict each other, and
// those that a data set needs or cannot have. All throw Error at site "options". Pure.
#pragma once

#include "data/datasets/click_entries.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Those of all sets.
void check_click_options(const data::DatasetOptions& o, const ClickSetOptions& set);
// Those of files; `fixed_columns`: the columns of the set are known.
void check_click_files(const data::DatasetOptions& o, const ClickSetOptions& set, bool fixed_columns);
// Those of packed records.
void check_click_records(const data::DatasetOptions& o, const ClickSetOptions& set);

}  // namespace lockstep::datasets
