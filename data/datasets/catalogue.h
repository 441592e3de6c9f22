// Returns the table of data sets that come with Lockstep, for programs and tools. A new data set needs its files and a
// line in catalogue.cpp.
#pragma once

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::Catalogue catalogue();  // images with labels, which are in memory as a whole
// These, and image files in folders and records (data/datasets/image_entries.h); programs with this table have the
// options of crops, augmentation and mixing.
data::Catalogue image_catalogue();
// Arrays of files: samples with the fields "input" and "target" (data/datasets/field_entries.h).
data::Catalogue field_catalogue();
data::Catalogue force_catalogue();  // atoms with energies and forces (data/datasets/clusters.h)

}  // namespace lockstep::datasets
