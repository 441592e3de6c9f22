// The training and evaluation sets of entries that read files of fields (data/catalogue.h, FieldOptions).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Opens the set of these files.
using MakeSet = std::function<std::unique_ptr<data::Dataset>(const data::DatasetOptions& options,
                                                             const std::vector<std::string>& files)>;

// Returns the sets for training and evaluation: of different files, or parts of the same files, which files of indices
// name or --eval-fraction divides. A run that only predicts, or only evaluates given files, has one set for both. No
// communication. Throws Error as `make` does, and for a part without samples.
data::RunData open_sets(const data::DatasetOptions& options, const MakeSet& make);

}  // namespace lockstep::datasets
