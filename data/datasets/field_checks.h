// Checks of the options and the samples of arrays: errors for what cannot be trained, warnings for what is probably not
// meant.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Throw Error at site "options" for options that contradict each other; of entries that read --files, also without it.
void check_fields_options(const data::DatasetOptions& options);
void check_files_options(const data::DatasetOptions& options);

// Reads the targets, which are flags, of all samples that the run trains or evaluates on; the ranks of `comm` share the
// work. Collective; throws AgreedError for a value that is not from 0 to 1.
void check_flags(const data::RunData& data, const data::DatasetOptions& options, const comm::Communicator* comm,
                 const std::vector<std::string>& targets);

// Warns on rank 0, a line each, about targets of a run that trains that are probably meant otherwise: integers that are
// trained as numbers, classes of which most never occur, labels with nearly as many classes as samples.
void warn_of_targets(const data::RunData& data, const data::DatasetOptions& options, const comm::Communicator* comm,
                     const std::vector<std::string>& targets);

}  // namespace lockstep::datasets
