// CIFAR-10 and CIFAR-100 in the binary form of https://www.cs.toronto.edu/~kriz/cifar.html: records without a header,
// label bytes, then 3 x 32 x 32 pixel bytes. A file must have exactly the records expected of it, for a file cut at a
// record's end would look whole.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/image_dataset.h"

namespace lockstep::datasets {

struct CifarFiles {
  std::vector<std::filesystem::path> files{};  // read in this order
  std::int64_t records = 10000;                // in each file
  std::int64_t label_bytes = 1;                // the last one counts: CIFAR-100 has coarse, then fine
  std::int64_t classes = 10;
  std::string description = "CIFAR-10";
};
std::unique_ptr<data::ImageDataset> read_cifar(const CifarFiles& options);

// The official files in `dir`, or in its cifar-10-batches-bin or cifar-100-binary; else those of the Python version
// (cifar_python.h), in `dir` or its cifar-10-batches-py or cifar-100-python.
std::unique_ptr<data::ImageDataset> read_cifar10(const std::filesystem::path& dir, data::Split split);
std::unique_ptr<data::ImageDataset> read_cifar100(const std::filesystem::path& dir, data::Split split);

data::DatasetEntry cifar10_entry();
data::DatasetEntry cifar100_entry();

}  // namespace lockstep::datasets
