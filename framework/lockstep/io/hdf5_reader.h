// Reads parts (hyperslabs) of datasets of any HDF5 file, also of files larger than memory, without HDF5's header. Two
// forms: in this process, where threads read one after the other because HDF5 has one lock, and in a process of its
// own, where a damaged file that makes libhdf5 crash ends that process alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/shape.h"

namespace lockstep::io {

// The facts of a dataset. Values are read as the DType that holds them: floats of up to 32 bits (f16 too) as F32,
// longer ones as F64; bytes and booleans as U8, integers of up to 32 bits as I32 and longer ones, or unsigned 32 bits,
// as I64.
struct Hdf5Info {
  Shape shape{};
  DType dtype = DType::F32;
  std::vector<std::int64_t> chunk{};  // elements of a chunk along each axis; empty: the dataset has no chunks

  bool operator==(const Hdf5Info&) const = default;
};

// Elements start + i * step, i < count, along each axis of a dataset of shape `info.shape`.
struct Hdf5Slab {
  std::vector<std::int64_t> start{}, count{}, step{};
};

struct Hdf5ReaderOptions {
  int open_files = 32;                 // limit of files that are open at once
  std::size_t chunk_cache = 16 << 20;  // bytes of decoded chunks that are kept per dataset; more if a slab has more
  std::size_t all_caches = std::size_t{256} << 20;  // of all datasets together: least recently used ones are closed
  // Datasets that are read by turns, as the fields of a sample: as many stay open also where their chunks are more than
  // all_caches, up to half of `memory`.
  std::size_t sets_at_once = 1;
  std::size_t memory = std::size_t{4} << 30;  // bytes that a reader process may take beyond the caches
};

// Any thread may call a reader; calls wait for each other. Functions throw Error at site "hdf5" with file, dataset and
// HDF5's reason; a dataset that is not there is answered with the names of those that are.
class Hdf5Reader {
 public:
  virtual ~Hdf5Reader() = default;
  virtual Hdf5Info info(const std::string& file, const std::string& dataset) = 0;
  // The names of the groups in group `group`, sorted.
  virtual std::vector<std::string> groups(const std::string& file, const std::string& group) = 0;
  // Reads a slab, densely, in the order of the axes, as elements of expected.dtype. Throws Error if the dataset is not
  // as `expected`, if `out` has another size than the slab, and for an unsigned number above 2^63 - 1.
  virtual void read(const std::string& file, const std::string& dataset, const Hdf5Info& expected, const Hdf5Slab& slab,
                    std::span<std::byte> out) = 0;
  // The number of lists in a dataset of one axis whose elements are lists of integers (HDF5's variable-length types);
  // -1: it has other elements, which info() and read() take.
  virtual std::int64_t lists(const std::string& file, const std::string& dataset) = 0;
  // Returns the length of list `index` of such a dataset, and writes its integers if `out` has room for all of them.
  virtual std::int64_t read_list(const std::string& file, const std::string& dataset, std::int64_t index,
                                 std::span<std::int64_t> out) = 0;
};

// A reader in this process: for files that are trusted.
std::unique_ptr<Hdf5Reader> make_hdf5_reader(const Hdf5ReaderOptions& options);
// A reader in a process of its own, which starts with the first call and again after a crash. The process is made by
// fork() and shares memory with this one until either writes to it, so the first call belongs before a program fills
// its memory. It ends with the reader or with this process.
std::unique_ptr<Hdf5Reader> make_isolated_hdf5_reader(const Hdf5ReaderOptions& options);

}  // namespace lockstep::io
