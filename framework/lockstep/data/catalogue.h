// Data sets by name. The framework has none of its own: a program hands its session a catalogue, a table with a row per
// data set (data/datasets/catalogue.h has those that come with Lockstep).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct DatasetOptions {
  std::string name{};                            // of an entry of the catalogue
  std::filesystem::path dir{};                   // of the files, where the entry needs files
  std::int64_t limit_train = 0, limit_eval = 0;  // the first so many samples; 0: all
  std::uint64_t seed = 0;                        // of data that is made, not read
};

struct DatasetEntry {
  std::string name;
  std::string description;  // the source of the samples, in a few words for --help and lists
  bool needs_dir = false;   // the samples are read from files in DatasetOptions::dir
  // Opens one split. Throws Error for files that are not as expected. Every sample has a field "image" (channels,
  // height, width).
  std::function<std::unique_ptr<Dataset>(const DatasetOptions&, Split)> open;
  // Of pixels in [0, 1] over the training set, per channel; one value stands for every channel. Empty: measured when
  // the set is opened.
  std::vector<float> mean, stddev;
  bool mirrored = false;  // augmentation may flip images left to right
};

using Catalogue = std::span<const DatasetEntry>;  // of a table that outlives its users

struct DatasetPair {
  std::unique_ptr<Dataset> train{}, eval{};
  std::int64_t classes = 0;
  Shape image_shape{};                  // channels, height, width
  std::vector<float> mean{}, stddev{};  // as in DatasetEntry, one value per channel
  bool mirrored = false;
};

struct PixelStatistics {
  std::vector<float> mean, stddev;  // per channel
};
// Of the field "image", bytes, taken as numbers in [0, 1]. The sums are exact, so they are the same on every machine.
PixelStatistics pixel_statistics(const Dataset& dataset);

std::string dataset_names(Catalogue catalogue);  // "digits, mnist"
// Throws Error at "options", in the words of the command line, for a name that the catalogue does not have and for a
// missing folder.
const DatasetEntry& find_dataset(Catalogue catalogue, std::string_view name);
void check_dataset(Catalogue catalogue, std::string_view name, const std::filesystem::path& dir);
// Throws Error as the functions above, for a limit larger than the set, and for files that are not as expected.
DatasetPair open_datasets(Catalogue catalogue, const DatasetOptions& options);

}  // namespace lockstep::data
