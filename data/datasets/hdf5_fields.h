// Fields of HDF5 files as samples: each input and target is a dataset with an axis that counts samples, or one dataset
// in each of many groups. Files may be larger than memory: a sample's part is read when it is asked for. HDF5 runs in
// reader processes (lockstep/io/hdf5_reader.h), which several threads use at once and which a damaged file cannot take
// this process along with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/click_bags.h"
#include "data/datasets/hdf5_bags.h"
#include "lockstep/data/dataset.h"
#include "lockstep/data/field_selection.h"
#include "lockstep/io/hdf5_reader.h"

namespace lockstep::datasets {

struct Hdf5Options {
  std::vector<std::string> files{};   // names or patterns such as "run*.h5": their samples one file after the other
  std::filesystem::path dir{};        // the folder of relative names
  std::vector<std::string> inputs{};  // texts of parse_field(): "density", "v=fields/v[:, 0:2, ::2]:f32"
  std::vector<std::string> targets{};
  std::int64_t sample_axis = 0;  // of every dataset; -1: the last axis
  bool groups = false;  // each group inside `group` is a sample: datasets are below it, and no axis counts samples
  std::string group = "/";
  std::int64_t classes = 0;  // of an I32 field "label"; 0: no classes
  // Inputs and targets, by the names of their fields, that are bags of ids (--bags): where their datasets have ids of
  // any number for a sample (hdf5_bags.h), the field is I64 (places). Neither with groups nor with slices.
  std::vector<ClickBag> bags{};
  int processes = 1;    // that read; 0: this process reads, one thread at a time
  int open_files = 32;  // in each of them
  // Bytes of decoded chunks in all of them together. The chunks of one sample stay in each also if they are more, up to
  // 2 GiB.
  std::size_t cache = std::size_t{256} << 20;
};

// Any thread may read.
class Hdf5Dataset : public data::Dataset {
 public:
  // Opens every file once. Throws Error with file, dataset and expectation for names that are not there (and says which
  // are), unequal numbers of samples, and shapes or types that differ between files. A group's shape is checked when
  // its sample is read.
  explicit Hdf5Dataset(Hdf5Options options);

  std::int64_t size() const override { return size_; }
  const std::vector<data::Field>& fields() const override { return fields_; }  // the inputs, then the targets
  std::int64_t classes() const override { return options_.classes; }
  std::string describe() const override;
  std::string locate(std::int64_t index) const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

  std::size_t inputs() const { return options_.inputs.size(); }  // the number of fields that are inputs

 private:
  // A dataset of one file, and the part of it that samples have; or bags.
  struct Part {
    std::optional<Hdf5Bag> bag{};
    io::Hdf5Info info{};
    std::vector<data::AxisRange> ranges{};
    std::int64_t axis = -1;  // which counts samples; -1: none does
    std::int64_t samples() const { return bag ? bag->samples() : ranges[static_cast<std::size_t>(axis)].count; }
  };
  struct File {
    std::string path{};
    std::int64_t first = 0, samples = 0;
    std::vector<Part> parts{};          // one per field; with groups, those of the first file's first group
    std::vector<std::string> groups{};  // one per sample
  };

  void make_readers();
  void add_file(const std::string& path);
  Part open_part(const std::string& path, const std::string& dataset, const data::FieldSelection& selection) const;
  void add_field(const File& file, std::size_t field, const std::string& dataset, const Part& part);
  std::int64_t axis_of(const io::Hdf5Info& info, const std::string& path, const std::string& dataset) const;
  const File& file_of(std::int64_t index) const;
  io::Hdf5Reader& reader_for(const File& file, std::int64_t sample) const;
  void read_field(const File& file, std::int64_t sample, std::size_t field, std::byte* out) const;

  Hdf5Options options_;
  std::vector<data::FieldSelection> selections_;
  std::vector<data::Field> fields_;
  std::vector<File> files_;
  std::int64_t size_ = 0;
  std::vector<std::unique_ptr<io::Hdf5Reader>> readers_;
};

}  // namespace lockstep::datasets
