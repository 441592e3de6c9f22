#include "lockstep/io/image_read.h"

#include <hdf5.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/image_types.h"

namespace lockstep::io {
namespace {

constexpr int kMaxDepth = 32;              // nested groups; stops at a group that contains itself
constexpr std::size_t kMaxDeflate = 1100;  // deflate packs zeros at most 1032:1, so a larger claim is wrong

// Gives the caller's bytes to the core driver. The file is opened read-only, so HDF5 neither writes nor resizes them.
H5FD_file_image_callbacks_t lend(std::span<const std::byte> image) {
  H5FD_file_image_callbacks_t calls{};
  calls.image_malloc = [](std::size_t, H5FD_file_image_op_t, void* data) { return data; };
  calls.image_memcpy = [](void* to, const void*, std::size_t, H5FD_file_image_op_t, void*) { return to; };
  calls.image_realloc = [](void*, std::size_t, H5FD_file_image_op_t, void*) -> void* { return nullptr; };
  calls.image_free = [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; };
  calls.udata_copy = [](void* data) { return data; };
  calls.udata_free = [](void*) -> herr_t { return 0; };
  calls.udata = const_cast<std::byte*>(image.data());
  return calls;
}

Hdf5Handle open_image(std::span<const std::byte> image, const std::string& file) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, file, "H5Pcreate");
  check_hdf5(H5Pset_fapl_core(access.get(), 65536, 0), file, "H5Pset_fapl_core");
  auto calls = lend(image);
  check_hdf5(H5Pset_file_image_callbacks(access.get(), &calls), file, "H5Pset_file_image_callbacks");
  check_hdf5(H5Pset_file_image(access.get(), calls.udata, image.size()), file, "H5Pset_file_image");
  // HDF5 distinguishes open images by name; no file has this name.
  static std::atomic<std::int64_t> count{0};
  const std::string name = formatted("lockstep-image-{}", count++);
  return {H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, file, "not readable as HDF5"};
}

struct Link {
  std::string name;
  bool hard;
};

std::vector<Link> links_of(Hdf5Id group, const std::string& file, const std::string& path) {
  std::vector<Link> links;
  const auto append = [](hid_t, const char* name, const H5L_info_t* info, void* out) -> herr_t {
    try {
      static_cast<std::vector<Link>*>(out)->push_back({name, info->type == H5L_TYPE_HARD});
      return 0;
    } catch (const std::exception&) {
      return -1;  // out of memory; no exception may pass through HDF5
    }
  };
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &links), file, "group \"" + path + "\"");
  return links;
}

// Walks through the groups of a file.
class Lister {
 public:
  Lister(std::size_t image_bytes, const std::string& file) : image_bytes_(image_bytes), file_(file) {}

  void group(Hdf5Id id, const std::string& path, int depth) {
    check(depth <= kMaxDepth, "checkpoint", "{}: group \"{}\" lies deeper than {} groups", file_, path, kMaxDepth);
    for (const Link& link : links_of(id, file_, path)) {
      const std::string name = path.empty() ? link.name : path + "/" + link.name;
      // Every object takes more than 8 bytes, unless links form a cycle.
      check(++visited_ <= image_bytes_ / 8, "checkpoint", "{}: more objects than {} bytes can hold", file_,
            image_bytes_);
      check(link.hard, "checkpoint", "{}: \"{}\" is a soft or external link, which is not followed", file_, name);
      const Hdf5Handle object(H5Oopen(id, link.name.c_str(), H5P_DEFAULT), H5Oclose, file_, name);
      const H5I_type_t kind = H5Iget_type(object.get());
      if (kind == H5I_GROUP) {
        group(object.get(), name, depth + 1);
      } else {
        check(kind == H5I_DATASET, "checkpoint", "{}: \"{}\" is neither a group nor a dataset", file_, name);
        dataset(object.get(), name);
      }
    }
  }

  std::vector<TensorInfo> take_tensors() {
    std::ranges::sort(tensors_, {}, &TensorInfo::name);
    return std::move(tensors_);
  }
  std::optional<std::string> take_metadata() { return std::move(metadata_); }

 private:
  void dataset(Hdf5Id set, const std::string& name) {
    const Hdf5Handle type(H5Dget_type(set), H5Tclose, file_, name);
    if (name == "metadata" && H5Tget_class(type.get()) == H5T_STRING) return metadata(set, type.get());
    const auto dtype = dtype_of_hdf5(type.get());
    check(dtype.has_value(), "checkpoint", "{}: elements of \"{}\" are not of type f32, f64, i32, i64 or u8", file_,
          name);
    Shape shape = shape_of(set, name);
    check_size(set, name, shape, size_of(*dtype));
    tensors_.push_back({name, std::move(shape), *dtype});
  }

  void metadata(Hdf5Id set, Hdf5Id type) {
    check(H5Tis_variable_str(type) == 0 && shape_of(set, "metadata") == Shape(), "checkpoint",
          "{}: \"metadata\" is not one string of fixed length", file_);
    const std::size_t bytes = H5Tget_size(type);
    check_size(set, "metadata", Shape(), bytes);
    std::string text(bytes, '\0');
    check_hdf5(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), file_, "metadata");
    text.resize(text.find_last_not_of('\0') + 1);
    metadata_ = std::move(text);
  }

  Shape shape_of(Hdf5Id set, const std::string& name) const {
    const Hdf5Handle space(H5Dget_space(set), H5Sclose, file_, name);
    check(H5Sget_simple_extent_type(space.get()) != H5S_NULL, "checkpoint",
          "{}: \"{}\" has no values (a null dataspace)", file_, name);
    const auto rank = check_hdf5(H5Sget_simple_extent_ndims(space.get()), file_, name);
    std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
    check_hdf5(H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr), file_, name);
    return Shape(std::vector<std::int64_t>(extent.begin(), extent.end()));
  }

  // Checks the claimed size against the file before memory is allocated: a damaged file may claim any size.
  void check_size(Hdf5Id set, const std::string& name, const Shape& shape, std::size_t element) const {
    std::uint64_t bytes = element;
    bool overflow = false;
    for (std::int64_t d : shape.dims()) {
      overflow |=
          d < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(std::max<std::int64_t>(d, 1)), &bytes);
    }
    const Hdf5Handle create(H5Dget_create_plist(set), H5Pclose, file_, name);
    const H5D_layout_t layout = H5Pget_layout(create.get());
    const bool inside = layout == H5D_CONTIGUOUS || layout == H5D_COMPACT || layout == H5D_CHUNKED;
    check(inside && H5Pget_external_count(create.get()) == 0, "checkpoint",
          "{}: values of \"{}\" lie outside the file (external or virtual storage)", file_, name);
    const std::size_t limit = layout == H5D_CHUNKED ? image_bytes_ * kMaxDeflate : image_bytes_;
    const bool none = std::ranges::count(shape.dims(), 0) > 0;
    check(!overflow && (none || bytes <= limit), "checkpoint",
          "{}: \"{}\" claims shape {}, more than the file's {} bytes hold", file_, name, shape.str(), image_bytes_);
    check(none || H5Dget_storage_size(set) > 0, "checkpoint", "{}: values of \"{}\" were never written", file_, name);
  }

  std::size_t image_bytes_;
  const std::string& file_;
  std::size_t visited_ = 0;
  std::vector<TensorInfo> tensors_;
  std::optional<std::string> metadata_;
};

// Verifies the checksum attribute. Files of other programs and of format version 1 have none.
void check_sum(Hdf5Id set, const std::string& name, const Tensor& tensor, const std::string& file) {
  if (check_hdf5(H5Aexists(set, kChecksum), file, name) == 0) return;
  const Hdf5Handle attribute(H5Aopen(set, kChecksum, H5P_DEFAULT), H5Aclose, file, name);
  const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose, file, name);
  const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose, file, name);
  check(H5Tequal(type.get(), H5T_STD_U64LE) > 0 && H5Sget_simple_extent_npoints(space.get()) == 1, "checkpoint",
        "{}: \"{}\" has an attribute \"{}\" that is not one unsigned integer of 64 bits", file, name, kChecksum);
  std::uint64_t expected = 0;
  check_hdf5(H5Aread(attribute.get(), H5T_NATIVE_UINT64, &expected), file, name);
  const std::uint64_t hash = XXH3_64bits(tensor.raw(), tensor.bytes());
  check(hash == expected, "checkpoint", "{}: damaged: XXH3-64 of the values of \"{}\" is {:016x}, expects {:016x}",
        file, name, hash, expected);
}

}  // namespace

ImageReader::ImageReader(std::span<const std::byte> image, std::string file) : file_(std::move(file)) {
  check(!image.empty(), "checkpoint", "{}: the file is empty, expected HDF5 data", file_);
  const Hdf5Session session;
  Hdf5Handle opened = open_image(image, file_);
  const Hdf5Handle root(H5Gopen2(opened.get(), "/", H5P_DEFAULT), H5Gclose, file_, "root group");
  Lister lister(image.size(), file_);
  lister.group(root.get(), "", 0);
  tensors_ = lister.take_tensors();
  metadata_ = lister.take_metadata();
  image_ = std::move(opened);
}

ImageReader::~ImageReader() {
  const Hdf5Session session;
  image_ = {};
}

Tensor ImageReader::read(std::size_t index) const {
  const TensorInfo& info = tensors_[index];
  const Hdf5Session session;
  const Hdf5Handle set(H5Dopen2(image_.get(), info.name.c_str(), H5P_DEFAULT), H5Dclose, file_, info.name);
  Tensor tensor(info.shape, info.dtype);
  if (tensor.bytes() > 0) {
    check_hdf5(H5Dread(set.get(), hdf5_memory_type(info.dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.raw()), file_,
               info.name);
  }
  check_sum(set.get(), info.name, tensor, file_);
  return tensor;
}

Tensor ImageReader::read_rows(std::size_t index, Range rows) const {
  const TensorInfo& info = tensors_[index];
  check(info.shape.rank() > 0 && rows.begin >= 0 && rows.begin <= rows.end && rows.end <= info.shape[0], "checkpoint",
        "{}: \"{}\" has shape {}, expected one with rows {} to {}", file_, info.name, info.shape.str(), rows.begin,
        rows.end);
  Tensor tensor(info.shape.tail().batched(rows.size()), info.dtype);
  if (tensor.bytes() == 0) return tensor;
  const Hdf5Session session;
  const Hdf5Handle set(H5Dopen2(image_.get(), info.name.c_str(), H5P_DEFAULT), H5Dclose, file_, info.name);
  const Hdf5Handle from(H5Dget_space(set.get()), H5Sclose, file_, info.name);
  const std::vector<hsize_t> count(tensor.shape().dims().begin(), tensor.shape().dims().end());
  std::vector<hsize_t> start(count.size());
  start[0] = static_cast<hsize_t>(rows.begin);
  check_hdf5(H5Sselect_hyperslab(from.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), file_,
             info.name);
  const auto elements = static_cast<hsize_t>(tensor.elements());
  const Hdf5Handle to(H5Screate_simple(1, &elements, nullptr), H5Sclose, file_, info.name);
  check_hdf5(H5Dread(set.get(), hdf5_memory_type(info.dtype), to.get(), from.get(), H5P_DEFAULT, tensor.raw()), file_,
             info.name);
  return tensor;
}

}  // namespace lockstep::io
