// Fields of NumPy's arrays as samples: each input and target is a .npy file, or an array of a .npz archive, with an
// axis that counts samples. A .npy file may be larger than memory: a sample's bytes are read when it is asked for, at
// their place in the file (pread), and the system's cache of pages keeps what is read again; unlike a mapping, a file
// that became shorter is an error then and not the end of the process. Arrays of a .npz are unpacked into memory at
// once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/dataset.h"
#include "lockstep/data/field_selection.h"

namespace lockstep::datasets {

struct NpyOptions {
  std::filesystem::path dir{};  // the folder of relative names
  // Texts of parse_field(), whose path is a file, or an archive and a name in it: "density.npy", "v=train.npz/v[:,
  // 0:2]". Without "NAME=" the field has the name of the file without .npy, or of the array.
  std::vector<std::string> inputs{};
  std::vector<std::string> targets{};
  std::int64_t sample_axis = 0;  // of every array; -1: the last axis
  std::int64_t classes = 0;      // of an I32 field "label"; 0: no classes
};

// Elements are read as io/hdf5_reader.h reads them: f2 and f4 as F32, f8 as F64, u1 and b1 as U8, integers of up to 32
// bits as I32, longer ones and u4 as I64. Any thread may read.
class NpyDataset : public data::Dataset {
 public:
  // Throws Error with file, array and expectation for files that are damaged or too short, unequal numbers of samples,
  // and elements that are no numbers.
  explicit NpyDataset(NpyOptions options);
  ~NpyDataset() override;

  std::int64_t size() const override { return size_; }
  const std::vector<data::Field>& fields() const override { return fields_; }  // the inputs, then the targets
  std::int64_t classes() const override { return options_.classes; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  std::size_t inputs() const { return options_.inputs.size(); }  // the number of fields that are inputs

 private:
  class Source;
  void add_field(data::FieldSelection selection);

  NpyOptions options_;
  std::vector<data::Field> fields_;
  std::vector<std::unique_ptr<Source>> sources_;  // one per field
  std::int64_t size_ = 0;
};

}  // namespace lockstep::datasets
