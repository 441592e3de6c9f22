// The reader in this process. All calls of HDF5, and all members, are under the lock of a session.
#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <list>
#include <map>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/io/hdf5_chunk_cache.h"
#include "lockstep/io/hdf5_listing.h"
#include "lockstep/io/hdf5_lists.h"
#include "lockstep/io/hdf5_reader.h"
#include "lockstep/io/hdf5_reading.h"
#include "lockstep/io/image_types.h"

namespace lockstep::io {
namespace {

constexpr std::size_t kMostSets = 64;  // open datasets of one file

std::int64_t checked(std::int64_t code, const std::string& file, std::string_view operation) {
  return check_hdf5(code, file, operation, kHdf5);
}

// Throws Error for a filter (compression) that this library does not have.
void check_filters(Hdf5Id create, const std::string& file, const std::string& dataset) {
  const auto filters = checked(H5Pget_nfilters(create), file, dataset);
  for (unsigned i = 0; i < static_cast<unsigned>(filters); ++i) {
    unsigned flags = 0, config = 0;
    std::size_t values = 0;
    char name[128] = "";
    const H5Z_filter_t filter = H5Pget_filter2(create, i, &flags, &values, nullptr, sizeof name, name, &config);
    checked(filter, file, dataset);
    if ((flags & H5Z_FLAG_OPTIONAL) != 0 || H5Zfilter_avail(filter) > 0) continue;
    name[sizeof name - 1] = '\0';
    fail(kHdf5,
         "{}: '{}' is compressed with filter {} ({}), which this HDF5 library lacks; expected its plugin in "
         "HDF5_PLUGIN_PATH, or a file rewritten with: h5repack -f GZIP=4 IN OUT",
         file, dataset, filter, name);
  }
}

class DirectReader : public Hdf5Reader {
 public:
  explicit DirectReader(const Hdf5ReaderOptions& options) : options_(options) {
    check(options.open_files > 0, kHdf5, "{} open files, expected at least 1", options.open_files);
  }
  ~DirectReader() override {
    const Hdf5Session session;
    files_.clear();
  }

  Hdf5Info info(const std::string& file, const std::string& dataset) override {
    const Hdf5Session session;
    const Set set = open_set(open_file(file), dataset, nullptr);
    require_lists(set, false, file, dataset);
    return set.info;
  }

  std::vector<std::string> groups(const std::string& file, const std::string& group) override {
    const Hdf5Session session;
    return hdf5_groups(open_file(file).handle.get(), file, group);
  }

  void read(const std::string& file, const std::string& dataset, const Hdf5Info& expected, const Hdf5Slab& slab,
            std::span<std::byte> out) override {
    const Hdf5Session session;
    const Set& set = cached_set(open_file(file), dataset, slab);
    require_lists(set, false, file, dataset);
    if (set.info.shape != expected.shape || set.info.dtype != expected.dtype) {  // not check(): called for every sample
      fail(kHdf5, "{}: '{}' is {} {}, expected {} {}", file, dataset, name_of(set.info.dtype), set.info.shape.str(),
           name_of(expected.dtype), expected.shape.str());
    }
    read_slab(set, file, dataset, slab, out);
  }

  std::int64_t lists(const std::string& file, const std::string& dataset) override {
    const Hdf5Session session;
    const Set set = open_set(open_file(file), dataset, nullptr);
    if (!set.lists) return -1;
    check(set.info.shape.rank() == 1, kHdf5, "{}: '{}' has lists in shape {}, expected one axis of lists", file,
          dataset, set.info.shape.str());
    return set.info.shape[0];
  }

  std::int64_t read_list(const std::string& file, const std::string& dataset, std::int64_t index,
                         std::span<std::int64_t> out) override {
    const Hdf5Session session;
    const Set& set = cached_set(open_file(file), dataset, {.start = {index}, .count = {1}, .step = {1}});
    require_lists(set, true, file, dataset);
    return read_hdf5_list(set.handle.get(), file, dataset, index, out);
  }

 private:
  struct Set {
    Hdf5Handle handle{};
    Hdf5Info info{};
    bool lists = false;      // its elements are lists of integers
    std::size_t cache = 0;   // bytes that its cache of chunks may have; 0: it has none
    std::uint64_t used = 0;  // rises with each use of any set
  };
  struct File {
    std::string path;
    Hdf5Handle handle;
    std::map<std::string, Set> sets;  // after the file: they close first
  };
  // The open datasets that have a cache.
  struct Caches {
    std::size_t sets = 0, bytes = 0;
    File* file = nullptr;  // of the least recently used one
    std::map<std::string, Set>::iterator oldest = {};
  };

  // Opens a file, or takes the open one; the least recently used file goes when there are too many.
  File& open_file(const std::string& path) {
    const auto found = std::ranges::find(files_, path, &File::path);
    if (found != files_.end()) {
      files_.splice(files_.begin(), files_, found);
      return files_.front();
    }
    std::error_code error;
    check(std::filesystem::exists(path, error), kHdf5, "{}: there is no such file", path);
    check(!std::filesystem::is_directory(path, error), kHdf5, "{}: is a folder, expected an HDF5 file", path);
    if (files_.size() >= static_cast<std::size_t>(options_.open_files)) files_.pop_back();
    Hdf5Handle handle =
        owned(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose, path, "not readable as HDF5");
    files_.push_front(File{path, std::move(handle), {}});
    return files_.front();
  }

  // Opens a dataset for a slab, or takes the open one. `slab` decides the size of its cache of chunks.
  const Set& cached_set(File& file, const std::string& dataset, const Hdf5Slab& slab) {
    const auto found = file.sets.find(dataset);
    if (found != file.sets.end()) {
      found->second.used = ++uses_;
      return found->second;
    }
    if (file.sets.size() >= kMostSets) file.sets.clear();
    Set set = open_set(file, dataset, &slab);
    set.used = ++uses_;
    return file.sets.emplace(dataset, std::move(set)).first->second;
  }

  Caches open_caches() {
    Caches caches;
    for (File& file : files_) {
      for (auto set = file.sets.begin(); set != file.sets.end(); ++set) {
        if (set->second.cache == 0) continue;
        ++caches.sets;
        caches.bytes += set->second.cache;
        if (caches.file != nullptr && caches.oldest->second.used < set->second.used) continue;
        caches.file = &file;
        caches.oldest = set;
      }
    }
    return caches;
  }

  // Closes the least recently used datasets until there is room for the cache of one more.
  void make_room(std::size_t bytes) {
    for (Caches now = open_caches(); now.sets > 0; now = open_caches()) {
      if (now.bytes + bytes <= most_cache_bytes(now.sets, options_)) return;
      now.file->sets.erase(now.oldest);
    }
  }

  // With a slab, for use in `sets`: closes others if need be.
  Set open_set(const File& file, const std::string& dataset, const Hdf5Slab* slab) {
    if (!hdf5_has(file.handle.get(), dataset)) fail_missing(file, dataset);
    Set set{.handle = owned(H5Oopen(file.handle.get(), dataset.c_str(), H5P_DEFAULT), H5Oclose, file.path, dataset)};
    if (H5Iget_type(set.handle.get()) != H5I_DATASET) {
      fail(kHdf5, "{}: '{}' is a group, expected a dataset; the file has: {}", file.path, dataset,
           hdf5_listing(file.handle.get()));
    }
    set.info = info_of(set.handle.get(), file.path, dataset, set.lists);
    if (slab == nullptr || set.info.chunk.empty()) return set;
    const std::size_t axes = set.info.chunk.size();
    check(slab->start.size() == axes && slab->count.size() == axes && slab->step.size() == axes, kHdf5,
          "{}: '{}' has {} axes, expected {}", file.path, dataset, axes, slab->count.size());
    set.cache = chunk_cache_bytes(set.info, *slab, options_);
    make_room(set.cache);
    const Hdf5Handle access = chunk_cache(set.info, set.cache, file.path);
    set.handle = {};  // the size of the cache is that of the first open handle
    set.handle = owned(H5Dopen2(file.handle.get(), dataset.c_str(), access.get()), H5Dclose, file.path, dataset);
    return set;
  }

  [[noreturn]] static void fail_missing(const File& file, const std::string& dataset) {
    fail(kHdf5, "{}: no dataset '{}', the file has: {}", file.path, dataset, hdf5_listing(file.handle.get()));
  }

  static void require_lists(const Set& set, bool wanted, const std::string& file, const std::string& dataset) {
    if (set.lists == wanted) return;
    fail(kHdf5, "{}: elements of '{}' are {}", file, dataset,
         wanted ? "single numbers, expected lists of integers"
                : "lists of integers, expected single numbers; lists are for ids: --bags of train_recsys");
  }

  static Hdf5Info info_of(Hdf5Id set, const std::string& file, const std::string& dataset, bool& lists) {
    Hdf5Info info;
    const Hdf5Handle type = owned(H5Dget_type(set), H5Tclose, file, dataset);
    lists = is_hdf5_list(type.get());
    const std::optional<DType> dtype = lists ? DType::I64 : hdf5_read_type(type.get());
    check(dtype.has_value(), kHdf5,
          "{}: elements of '{}' are no numbers of at most 64 bits, expected floats or integers", file, dataset);
    info.dtype = *dtype;
    const Hdf5Handle space = owned(H5Dget_space(set), H5Sclose, file, dataset);
    check(H5Sget_simple_extent_type(space.get()) != H5S_NULL, kHdf5, "{}: '{}' has no values (a null dataspace)", file,
          dataset);
    const auto rank = static_cast<std::size_t>(checked(H5Sget_simple_extent_ndims(space.get()), file, dataset));
    std::vector<hsize_t> extent(rank);
    checked(H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr), file, dataset);
    std::int64_t bytes = 8;
    for (const hsize_t size : extent) {
      check(size <= INT64_MAX &&
                !__builtin_mul_overflow(bytes, std::max<std::int64_t>(static_cast<std::int64_t>(size), 1), &bytes),
            kHdf5, "{}: '{}' claims more elements than memory has addresses", file, dataset);
    }
    info.shape = Shape(std::vector<std::int64_t>(extent.begin(), extent.end()));
    const Hdf5Handle create = owned(H5Dget_create_plist(set), H5Pclose, file, dataset);
    check_filters(create.get(), file, dataset);
    if (H5Pget_layout(create.get()) == H5D_CHUNKED && rank > 0) {
      std::vector<hsize_t> chunk(rank);
      checked(H5Pget_chunk(create.get(), static_cast<int>(rank), chunk.data()), file, dataset);
      info.chunk.assign(chunk.begin(), chunk.end());
    }
    return info;
  }

  static Hdf5Handle chunk_cache(const Hdf5Info& info, std::size_t bytes, const std::string& file) {
    Hdf5Handle access = owned(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose, file, "H5Pcreate");
    // 0: the least recently used chunk goes first, whether or not all of it was read.
    checked(H5Pset_chunk_cache(access.get(), chunk_cache_slots(info, bytes), bytes, 0.0), file, "H5Pset_chunk_cache");
    return access;
  }

  static void read_slab(const Set& set, const std::string& file, const std::string& dataset, const Hdf5Slab& slab,
                        std::span<std::byte> out) {
    const auto rank = static_cast<std::size_t>(set.info.shape.rank());
    check(slab.start.size() == rank && slab.count.size() == rank && slab.step.size() == rank, kHdf5,
          "{}: '{}' has {} axes, expected {}", file, dataset, rank, slab.start.size());
    const Shape part(slab.count);
    const std::size_t bytes = static_cast<std::size_t>(part.elements()) * size_of(set.info.dtype);
    if (bytes != out.size())
      fail(kHdf5, "{}: '{}': a slab {} has {} bytes, expected {}", file, dataset, part.str(), bytes, out.size());
    if (bytes == 0) return;
    const Hdf5Handle from = owned(H5Dget_space(set.handle.get()), H5Sclose, file, dataset);
    const std::vector<hsize_t> start(slab.start.begin(), slab.start.end()), count(slab.count.begin(), slab.count.end()),
        step(slab.step.begin(), slab.step.end());
    if (rank > 0) {
      checked(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), step.data(), count.data(), nullptr), file,
              dataset);
    }
    const hsize_t elements = static_cast<hsize_t>(part.elements());
    const Hdf5Handle to = rank > 0 ? owned(H5Screate_simple(1, &elements, nullptr), H5Sclose, file, dataset)
                                   : owned(H5Screate(H5S_SCALAR), H5Sclose, file, dataset);
    bool out_of_range = false;
    const Hdf5Handle transfer = owned(H5Pcreate(H5P_DATASET_XFER), H5Pclose, file, "H5Pcreate");
    checked(H5Pset_type_conv_cb(transfer.get(), refuse_range, &out_of_range), file, "H5Pset_type_conv_cb");
    const herr_t code =
        H5Dread(set.handle.get(), hdf5_memory_type(set.info.dtype), to.get(), from.get(), transfer.get(), out.data());
    if (out_of_range) {
      H5Eclear2(H5E_DEFAULT);
      fail(kHdf5, "{}: '{}' has a number in the slab from ({}) that {} cannot hold", file, dataset,
           joined(slab.start, ", "), name_of(set.info.dtype));
    }
    if (code < 0) checked(code, file, formatted("'{}', slab from ({})", dataset, joined(slab.start, ", ")));
  }

  Hdf5ReaderOptions options_;
  std::list<File> files_;  // the most recently used one first
  std::uint64_t uses_ = 0;
};

}  // namespace

std::unique_ptr<Hdf5Reader> make_hdf5_reader(const Hdf5ReaderOptions& options) {
  return std::make_unique<DirectReader>(options);
}

}  // namespace lockstep::io
