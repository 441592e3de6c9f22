// The report of `lockstep-data check`.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Reads every sample, and prints, in lines or as one object of JSON, sizes, shapes, samples per class, a line for each
// sample that cannot be read, and mean and deviation of the training pixels beside those of the catalogue. Throws Error
// as data::open_data(), and, at the end, if samples cannot be read.
void print_report(data::Catalogue catalogue, const data::DatasetOptions& options, bool as_json);

}  // namespace lockstep::datasets
