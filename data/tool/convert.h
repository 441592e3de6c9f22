// Writes the samples of a data set in a format that the readers of data/datasets and other programs can read.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/data/catalogue.h"

namespace lockstep::datasets {

// A row per format: its name, the files that it writes, and the function that writes them.
struct Format {
  std::string_view name, files;
  // Writes a data set below `folder`; a file is written completely or not at all. Throws Error for samples that do not
  // fit the format.
  void (*write)(const data::RunData& pair, const std::filesystem::path& folder);
};

std::span<const Format> formats();
// Returns the format of this name. Throws Error that lists the names if there is none.
const Format& find_format(std::string_view name);

}  // namespace lockstep::datasets
