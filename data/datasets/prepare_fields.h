// The part that entries of fields have in common: from the arrays of opened sets to the inputs and targets of a model.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Names of the fields in their order: the sets have inputs first, then targets. Of a table, the columns of both.
struct FieldNames {
  std::vector<std::string> inputs{}, targets{}, input_columns{}, target_columns{};
  std::vector<double> input_means{};  // of the columns of inputs (RecordedField::means)

  std::vector<std::string> all() const;
};

// Returns the names of fields whose first ones are those of --inputs.
FieldNames names_of(const data::DatasetOptions& options, const std::vector<data::Field>& fields);
// Returns the arrays of the targets, which predictions do not need.
std::vector<std::string> targets_of(const data::DatasetOptions& options);
// Whether the facts about the data are those of the run that made the weights (DatasetOptions::record).
bool is_known(const data::DatasetOptions& options);

// Measures the normalisation, counts classes, sets the transforms, and records what predictions need. Collective over
// the ranks of `comm`; throws AgreedError.
void prepare_fields(data::RunData& data, const data::DatasetOptions& options, const comm::Communicator* comm,
                    const FieldNames& names);

}  // namespace lockstep::datasets
