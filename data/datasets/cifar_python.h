// CIFAR-10 and CIFAR-100 in the Python version of https://www.cs.toronto.edu/~kriz/cifar.html, which torchvision
// downloads: pickled dicts with "data" (records x 3072 bytes, channels first) and "labels" or "fine_labels". The
// samples are those of the binary version, in the same order.
#pragma once

#include <memory>
#include <string>

#include "data/datasets/cifar.h"

namespace lockstep::datasets {

// Reads files in this format, each with `files.records` records; `files.label_bytes` is not used. `labels` is the key
// of the labels. Throws Error with file, offset and expectation.
std::unique_ptr<data::ImageDataset> read_cifar_python(const CifarFiles& files, const std::string& labels);

}  // namespace lockstep::datasets
