// Writes the samples of a data set in a format that the readers of data/datasets and other programs know.
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
  // Throws Error for samples that the format cannot hold; files are written whole or not at all.
  void (*write)(const data::DatasetPair& pair, const std::filesystem::path& folder);
};

std::span<const Format> formats();
// Throws Error with the names that there are.
const Format& find_format(std::string_view name);

}  // namespace lockstep::datasets
