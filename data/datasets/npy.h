// A user's images and labels, as NumPy saves them (format versions 1 to 3 of
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). A split is SPLIT_images.npy and
// SPLIT_labels.npy, or SPLIT.npz with the arrays "images" and "labels"; SPLIT is train or eval. Images are uint8,
// (samples, rows, columns) or (samples, channels, rows, columns); labels are integers, (samples).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/file_source.h"
#include "lockstep/data/image_dataset.h"

namespace lockstep::datasets {

struct NpyArray {
  std::string name{};  // of the file, for errors
  char kind = 'u';     // u: unsigned, i: signed integers, f: floats, b: bool
  std::int64_t item_bytes = 1;
  bool big_endian = false;
  std::vector<std::int64_t> shape{};
  std::vector<std::uint8_t> bytes{};  // row-major
};

// Reads the header of an array, without its elements; these follow at file.offset(). Throws as read_npy() does.
NpyArray read_npy_header(data::FileSource& file);
// The bytes of all elements. Throws Error if no file can hold that many.
std::int64_t npy_bytes(const NpyArray& array);
// "an array (4, 2) of float32".
std::string describe_npy(const NpyArray& array);
// Reads one array, which must end at the end of `file`. Throws Error with file, offset and expectation.
NpyArray read_npy(data::FileSource& file);
// Reads the array `name` (without .npy) of a .npz file. Throws Error if the archive lacks it or has it twice.
NpyArray read_npz(const std::filesystem::path& path, const std::string& name);

// Reads a split from `dir`. Throws Error if a file is missing, if an array is there in both forms, or if arrays are not
// images and labels.
std::unique_ptr<data::ImageDataset> read_npy_split(const std::filesystem::path& dir, data::Split split);

data::DatasetEntry npy_entry();

}  // namespace lockstep::datasets
