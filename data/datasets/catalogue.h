// Returns the table of data sets that come with Lockstep, for programs and tools. A new data set needs its files and a
// line in catalogue.cpp.
#pragma once

#include <vector>

#include "data/datasets/text_options.h"
#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

data::Catalogue catalogue();  // images with labels, which are in memory as a whole
// These, and image files in folders and records (data/datasets/image_entries.h); programs with this table have the
// options of crops, augmentation and mixing.
data::Catalogue image_catalogue();
// Arrays of files: samples with the fields "input" and "target" (data/datasets/field_entries.h).
data::Catalogue field_catalogue();
data::Catalogue force_catalogue();  // atoms with energies and forces (data/datasets/clusters.h)
// Text for language models: data/datasets/corpus.h and data/datasets/text_dataset.h. Samples have the fields "tokens"
// and "targets", I32 (context), where target i is token i + 1, and "bytes", I32 (), the number of bytes that the
// targets stand for; the end token counts as one. The entries read `options`, which must outlive them.
std::vector<data::DatasetEntry> text_catalogue(const TextOptions& options);

}  // namespace lockstep::datasets
