// Completes the data of a run whose samples are images, as DatasetOptions say: how files are decoded, the transforms of
// training and evaluation images, the mixing of batches, the numbers by which pixels are normalised, and the record
// from which a prediction repeats the evaluation's transforms. open_data() and prepare_data() call these functions.
#pragma once

#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/images/decoded_images.h"

namespace lockstep::data {

// Throws Error at site "options" for image options that contradict each other, and for those that `entry` ignores.
void check_image_options(const DatasetEntry& entry, const DatasetOptions& options);

// Returns the names of the classes in PredictionFacts::record of a run on images; numbers for classes without names.
// Throws Error at site "data" for another text.
std::vector<std::string> recorded_classes(std::string_view record);

// Returns how files of a split are decoded: random crops for training with `augment`, else the centre; without
// ImageSetOptions::size the whole image, which must be as large as the first readable one of `training`.
DecodeOptions decode_options(const DatasetOptions& options, Split split, const ImageFiles& training);

// Sets transforms, mixing, statistics, record and notes of a set with images; leaves others as they are. Throws Error
// for options about images with other data. The statistics of files are measured by prepare_images().
void complete_images(RunData& data, const DatasetEntry& entry, const DatasetOptions& options);

// Measures the statistics of pixels in files, if options ask for them: each rank reads a part. Collective over the
// ranks of `comm`, which is null for a process alone; throws AgreedError.
void prepare_images(RunData& data, const DatasetEntry& entry, const DatasetOptions& options,
                    const comm::Communicator* comm);

}  // namespace lockstep::data
