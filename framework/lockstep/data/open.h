// Data sets by name, as programs' options give them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

struct DatasetOptions {
  std::string name = "digits";                   // one of dataset_names()
  std::filesystem::path dir{};                   // of files: mnist, cifar10, cifar100
  std::int64_t limit_train = 0, limit_eval = 0;  // the first so many samples; 0: all
  std::uint64_t seed = 0;                        // of digits and synthetic
  Shape synthetic_shape = {3, 224, 224};
  std::int64_t synthetic_classes = 1000, synthetic_size = 10000;
  std::int64_t synthetic_eval_size = 128;  // unless limit_eval asks for more: there is nothing to be learnt from them
};

struct DatasetPair {
  std::unique_ptr<Dataset> train{}, eval{};
  std::int64_t classes = 0;
  Shape image_shape{};                  // channels, height, width
  std::vector<float> mean{}, stddev{};  // per channel, of pixels in [0, 1], over the training set
  bool mirrored = false;                // whether augmentation may flip images left to right
};

const std::vector<std::string>& dataset_names();
// Throws Error for a name that is not known, a limit larger than the set, and files that are not what they should be.
DatasetPair open_datasets(const DatasetOptions& options);

}  // namespace lockstep::data
