// A user's images and labels, as NumPy saves them (format versions 1 to 3 of
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). A split is SPLIT_images.npy and
// SPLIT_labels.npy, or SPLIT.npz with the arrays "images" and "labels"; SPLIT is train or eval. Images are uint8,
// (samples, rows, columns) or (samples, channels, rows, columns); labels are integers, (samples).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/file_source.h"
#include "lockstep/data/image_dataset.h"
#include "lockstep/io/named_tensor.h"

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

// The array as a tensor: float16 becomes f32, integers the narrowest of u8, i32 and i64 that holds their type. Throws
// Error for an unsigned number above 2^63 - 1.
Tensor tensor_of(const NpyArray& array);

// Reads all arrays of a .npz file, stored or deflated, under their names without .npy, in the file's order. Throws
// Error, with the file, for a damaged archive, two entries of one name, and an entry that is no array of numbers.
std::vector<io::NamedTensor> read_npz_tensors(const std::filesystem::path& path);
// Returns the bytes of a .npz file with these tensors, not compressed, as numpy.savez() writes them. Throws Error for
// two tensors of one name, and for types that NumPy lacks.
std::string write_npz(std::span<const io::NamedTensor> tensors);

// Reads a split from `dir`. Throws Error if a file is missing, if an array is there in both forms, or if arrays are not
// images and labels.
std::unique_ptr<data::ImageDataset> read_npy_split(const std::filesystem::path& dir, data::Split split);

data::DatasetEntry npy_entry();

}  // namespace lockstep::datasets
