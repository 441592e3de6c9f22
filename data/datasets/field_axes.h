// How the dimensions of samples are read: which are spatial, which counts channels.
#pragma once

#include <vector>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

struct FieldAxes {
  int inputs = 0, targets = 0;  // spatial dimensions, or 1 for time
  bool series = false;          // channels are behind the time, not in front
};

// Returns the axes of these inputs and targets, which are not classes. Where fields differ in their dimensions, those
// with more have channels. Targets of one dimension or none are numbers where the inputs are fields of more dimensions,
// or series. Throws Error at site "options" for series of other dimensions than (time) and (time, features).
FieldAxes axes_of(const data::DatasetOptions& options, const std::vector<data::Field>& inputs,
                  const std::vector<data::Field>& targets);

}  // namespace lockstep::datasets
