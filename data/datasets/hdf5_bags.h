// Bags of ids of any length in an HDF5 file: one array of the ids of all samples with an array of offsets, where bag i
// is ids[offsets[i]:offsets[i + 1]] (as rows of a sparse matrix in CSR form), or a dataset whose elements are lists. A
// value; its functions may be called by the threads that may call the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "data/datasets/click_bags.h"
#include "lockstep/io/hdf5_reader.h"

namespace lockstep::datasets {

class Hdf5Bag {
 public:
  // Opens the bags of `bag.field` in dataset `ids`; empty: the dataset has an array for each sample. Reads all offsets.
  // Throws Error at site "hdf5" for arrays that are not of integers in one axis, and for offsets that are not rising or
  // lie beyond the ids, with dataset, index and value.
  static std::optional<Hdf5Bag> open(io::Hdf5Reader& reader, const std::string& file, const std::string& ids,
                                     const ClickBag& bag);

  std::int64_t samples() const { return samples_; }
  std::int64_t places() const { return places_; }
  // Writes the ids of a sample's bag to places() elements, kMissingId behind them. Throws Error for more ids.
  void read(io::Hdf5Reader& reader, const std::string& file, std::int64_t sample, std::int64_t* out) const;

 private:
  // A dataset of integers in one axis.
  struct Integers {
    std::string name;
    io::Hdf5Info info;
    std::int64_t size() const { return info.shape[0]; }
    void read(io::Hdf5Reader& reader, const std::string& file, std::int64_t begin, std::span<std::int64_t> out) const;
  };
  static Integers open_integers(io::Hdf5Reader& reader, const std::string& file, const std::string& name);
  void check_offsets(const std::string& file, std::int64_t first, std::span<const std::int64_t> offsets) const;
  void check_all_offsets(io::Hdf5Reader& reader, const std::string& file) const;

  Integers ids_;                     // of lists, the name alone
  std::optional<Integers> offsets_;  // empty: lists
  std::int64_t samples_ = 0, places_ = 0;
};

}  // namespace lockstep::datasets
