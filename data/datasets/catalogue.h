// The data sets that come with Lockstep, for programs and tools. The table is explicit: a data set is its files and its
// line in catalogue.cpp.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::Catalogue catalogue();

}  // namespace lockstep::datasets
