// Completes opened samples of clicks: the rows of each field of ids, the normalisation of dense numbers, transforms.
#pragma once

#include "data/datasets/click_entries.h"
#include "data/datasets/click_record.h"

namespace lockstep::datasets {

// Reads RunData::record, a ClickRecord that has names and may have sizes. Sizes and normalisation are those of the run
// that made the weights, if there is one; otherwise they are measured over all samples, of which each rank of `comm`
// reads a part; null: this process alone. Then sets the record, the transforms, which draw negatives where the options
// ask for them, and the function that makes probabilities of predicted logits. Collective; throws AgreedError.
void prepare_clicks(data::RunData& data, const data::DatasetOptions& options, const comm::Communicator* comm,
                    const ClickSetOptions& set);

// Returns how often each row of one field of `ids` occurs in the training samples: as many numbers as the field has
// rows. Collective as above. Throws Error for ids that a vocabulary maps.
std::vector<std::int64_t> count_rows(const data::RunData& data, const IdRows& ids, std::size_t field,
                                     const comm::Communicator* comm);

}  // namespace lockstep::datasets
