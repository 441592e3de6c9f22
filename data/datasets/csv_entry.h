// The entry of a catalogue for tables in CSV files, beside those of field_entries.h.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::DatasetEntry csv_entry();

}  // namespace lockstep::datasets
