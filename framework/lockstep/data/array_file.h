// Writes arrays of samples to a new file, part by part in the order of the samples, in the form that the suffix of its
// name says:
//
//   .h5, .hdf5  one dataset per array, (samples, ...); slashes in a name make groups
//   .npy        the array, (samples, ...), of format version 1.0; there must be one array
//   .npz        the arrays by their names, as numpy.savez() writes them: a zip archive of .npy files, not compressed
//   .csv        one row per sample: its number from 0, then the elements of all arrays; the columns are called as the
//               array, with _0_3 behind for element [0, 3] of an array whose samples are not numbers
//
// ArrayNotes add what is known about samples and classes: columns of a .csv file, and a text of an .h5 file.
//
// Needs memory for one part. The file appears under its name when it is whole and on the disk; otherwise nothing is
// left. One thread at a time. Throws Error at site "predict" with the file, the cause and the expectation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

// Throws Error at `site` unless the suffix of the path is one of those above.
void check_array_file(const std::filesystem::path& path, std::string_view site);

// Throws Error if the form of the file cannot hold that many arrays; `names` lists them for the message.
void check_array_count(const std::filesystem::path& path, std::size_t arrays, std::string_view names);

// Throws Error if the file exists already, or its folder does not.
void check_new_file(const std::filesystem::path& path);

// Facts about the samples and classes of a file, beside the arrays.
struct ArrayNotes {
  // Returns the file of a sample. .csv: the column "file" behind "index". Empty: there is no such column.
  std::function<std::string(std::int64_t sample)> file{};
  // By label. .csv: the column "name" behind an array "class" of numbers, and in the names of the columns of an array
  // "probability", whose samples are (classes, ...), in place of the number of the class. Empty: they are not known.
  std::vector<std::string> class_names{};
  std::string metadata{};  // .h5: the text of the dataset "metadata"; empty: there is no such dataset
};

class ArrayFile {
 public:
  // Creates a temporary file in the folder of `path`, and removes those of killed writers there. Throws Error as both
  // functions above, and for a folder that cannot be written to.
  explicit ArrayFile(std::filesystem::path path);
  ~ArrayFile();
  ArrayFile(const ArrayFile&) = delete;
  ArrayFile& operator=(const ArrayFile&) = delete;

  // Lays the file out for `samples` samples of these arrays: names, shapes of one sample, types F32, F64, I32, I64, U8.
  void begin(std::vector<Field> arrays, std::int64_t samples, const ArrayNotes& notes = {});
  // Appends samples: the arrays of begin() in their order, each (samples of this part, ...).
  void append(std::span<const NamedTensor> part);
  // Finishes the file. Throws Error unless all samples were appended.
  void commit();

  class Form;

 private:
  void check_part(std::span<const NamedTensor> part) const;

  std::filesystem::path path_;
  std::vector<Field> arrays_;
  std::int64_t samples_ = 0, written_ = 0;
  std::unique_ptr<Form> form_;
};

}  // namespace lockstep::data
