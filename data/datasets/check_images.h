// Finds damaged image files before they are trained on.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// Looks at the beginning and the end of a JPEG or PNG file, and decodes the file if these are not as expected. Returns
// what is wrong with it, with its path; empty: nothing was found. Damage in the middle of a file is seen only when it
// is decoded.
std::string image_damage(const std::filesystem::path& file);

// Looks at all files of the sets of an image folder, whose samples are located by the paths of their files: each rank
// of `comm` at a part, with some threads, as each file takes the file system some time. Damaged files are an error of
// all ranks that names the first ones; with Unreadable::Replace they are a warning on rank 0. Collective; throws
// AgreedError, or Error without `comm`.
void check_image_files(const data::RunData& data, const data::DatasetOptions& options, const comm::Communicator* comm);

}  // namespace lockstep::datasets
