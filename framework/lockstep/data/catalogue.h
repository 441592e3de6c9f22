// Data sets by name. The framework contains no data set: a program gives its session a catalogue, a table with one row
// per data set (data/datasets/catalogue.h lists those of Lockstep). Any thread may call these functions.
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
  std::string name{};                            // name of an entry of the catalogue
  std::filesystem::path dir{};                   // folder with the files, for an entry that needs files
  std::int64_t limit_train = 0, limit_eval = 0;  // use this many first samples; 0: all
  std::uint64_t seed = 0;                        // seed of data that is generated
};

struct DatasetEntry {
  std::string name;
  std::string description;  // the source of the samples, in a few words for --help and lists
  bool needs_dir = false;   // the samples are read from files in DatasetOptions::dir
  // Opens one split. Throws Error with file, offset and expectation if a file is not as expected. Every sample has a
  // field "image" (channels, height, width).
  std::function<std::unique_ptr<Dataset>(const DatasetOptions&, Split)> open;
  // Mean and standard deviation of the training set's pixels in [0, 1]: one value per channel, or one for all channels.
  // Empty: measured when the set is opened.
  std::vector<float> mean, stddev;
  bool mirrored = false;  // augmentation may flip images left to right
};

using Catalogue = std::span<const DatasetEntry>;  // a table, which must outlive its users

struct DatasetPair {
  std::unique_ptr<Dataset> train{}, eval{};
  std::int64_t classes = 0;
  Shape image_shape{};                  // channels, height, width; with --resize, after it
  std::vector<float> mean{}, stddev{};  // as in DatasetEntry, one value per channel
  bool mirrored = false;
};

struct PixelStatistics {
  std::vector<float> mean, stddev;  // per channel
};
// Computes mean and standard deviation, per channel, of the field "image" (U8, scaled to [0, 1]) over all samples. The
// sums are exact, so all machines get the same values. Throws Error if the set has no pixels or no such field.
PixelStatistics pixel_statistics(const Dataset& dataset);

// Returns the names of all entries: "digits, mnist".
std::string dataset_names(Catalogue catalogue);
// Returns the entry called `name`; throws Error at site "options", which names the command line's options, if there is
// none. check_dataset() also throws if the entry needs a folder and `dir` is empty.
const DatasetEntry& find_dataset(Catalogue catalogue, std::string_view name);
void check_dataset(Catalogue catalogue, std::string_view name, const std::filesystem::path& dir);
// Opens both splits and measures pixel statistics that the entry does not state. Throws Error as the functions above,
// for a limit larger than the set, and for files that are not as expected.
DatasetPair open_datasets(Catalogue catalogue, const DatasetOptions& options);

}  // namespace lockstep::data
