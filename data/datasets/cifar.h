// CIFAR-10 and CIFAR-100 in the binary form of https://www.cs.toronto.edu/~kriz/cifar.html: records without a header,
// label bytes, then 3 x 32 x 32 pixel bytes. A file must have exactly the expected number of records, as a file that is
// cut at the end of a record would look complete.
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
  std::int64_t label_bytes = 1;                // per record; the last one is the label: CIFAR-100 has coarse, then fine
  std::int64_t classes = 10;
  std::string description = "CIFAR-10";
};
// Reads files in this format. Throws Error with file and offset for a file that is damaged or of another size.
std::unique_ptr<data::ImageDataset> read_cifar(const CifarFiles& options);

// Read the official files in `dir`, or in its cifar-10-batches-bin or cifar-100-binary; otherwise those of the Python
// version (cifar_python.h) in `dir`, or in its cifar-10-batches-py or cifar-100-python. Throw Error if there are none.
std::unique_ptr<data::ImageDataset> read_cifar10(const std::filesystem::path& dir, data::Split split);
std::unique_ptr<data::ImageDataset> read_cifar100(const std::filesystem::path& dir, data::Split split);

data::DatasetEntry cifar10_entry();
data::DatasetEntry cifar100_entry();

}  // namespace lockstep::datasets
