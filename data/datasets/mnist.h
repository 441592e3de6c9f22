// MNIST and its relatives (Fashion-MNIST, KMNIST) in the IDX format of http://yann.lecun.com/exdb/mnist: big-endian
// magic number and dimensions, then bytes. Plain or .gz. The readers check the whole file before they return a sample.
#pragma once

#include <filesystem>
#include <memory>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/image_dataset.h"

namespace lockstep::datasets {

struct IdxFiles {
  std::filesystem::path images{}, labels{};
  std::string description = "MNIST";
  std::int64_t classes = 10;
};

// Reads two IDX files: images (magic 0x803: count, rows, columns) and labels (magic 0x801: count). Throws Error with
// file, offset and expectation.
std::unique_ptr<data::ImageDataset> read_idx(const IdxFiles& files);

// Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz] in `dir`, dir/mnist or dir/MNIST/raw, plain files first.
// Throws Error if a file is missing.
std::unique_ptr<data::ImageDataset> read_mnist(const std::filesystem::path& dir, data::Split split);

data::DatasetEntry mnist_entry();

}  // namespace lockstep::datasets
