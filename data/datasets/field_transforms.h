// The requests of the options of arrays (data::FieldOptions), as options of normalisation and as transforms. The
// functions throw Error at site "options".
#pragma once

#include <string>
#include <vector>

#include "data/datasets/field_axes.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {

// How inputs and targets, which are not classes, are normalised, per channel; with --mean and --std, their numbers in
// the order of inputs, then targets. Targets that are flags stay as they are.
std::vector<data::NormalisationOptions> wishes(const data::DatasetOptions& options,
                                               const std::vector<data::Field>& inputs,
                                               const std::vector<data::Field>& targets, const FieldAxes& axes);

// Random symmetries of those of the named fields that are on the grid, or have channels alone: before normalisation,
// which would move the zero of vectors. Fields without a dimension of channels get one. Empty without --symmetry.
data::Transforms symmetry_transforms(const data::DatasetOptions& options, const std::vector<data::Field>& fields,
                                     const std::vector<std::string>& names, int axes);

}  // namespace lockstep::datasets
