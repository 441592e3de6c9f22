#include <hdf5.h>
#include <xxhash.h>

#include <algorithm>

#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/image.h"
#include "lockstep/io/image_types.h"

namespace lockstep::checkpoint {
namespace {

constexpr int kMaxDepth = 32;              // groups in groups; a group that contains itself ends here
constexpr std::size_t kMaxDeflate = 1100;  // deflate packs zeros 1032:1 at best, so a chunked dataset claims no more

// Lends the caller's bytes to the core driver. It is opened read-only, so they are neither written nor resized.
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
  return {H5Fopen("lockstep-image", H5F_ACC_RDONLY, access.get()), H5Fclose, file, "not readable as HDF5"};
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
      return -1;  // no memory; nothing may be thrown through HDF5
    }
  };
  check_hdf5(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, append, &links), file, "group \"" + path + "\"");
  return links;
}

class Reader {
 public:
  Reader(std::size_t image_bytes, const std::string& file) : image_bytes_(image_bytes), file_(file) {}

  void group(Hdf5Id id, const std::string& path, int depth) {
    check(depth <= kMaxDepth, "checkpoint", "{}: group \"{}\" lies deeper than {} groups", file_, path, kMaxDepth);
    for (const Link& link : links_of(id, file_, path)) {
      const std::string name = path.empty() ? link.name : path + "/" + link.name;
      // Every object takes more room than this, unless links run in circles.
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

  Image take() {
    std::ranges::sort(image_.tensors, {}, &NamedTensor::name);
    return std::move(image_);
  }

 private:
  void dataset(Hdf5Id set, const std::string& name) {
    const Hdf5Handle type(H5Dget_type(set), H5Tclose, file_, name);
    if (name == "metadata" && H5Tget_class(type.get()) == H5T_STRING) return metadata(set, type.get());
    const auto dtype = dtype_of_hdf5(type.get());
    check(dtype.has_value(), "checkpoint", "{}: elements of \"{}\" are not of type f32, f64, i32, i64 or u8", file_,
          name);
    Shape shape = shape_of(set, name);
    check_size(set, name, shape, size_of(*dtype));
    Tensor tensor(std::move(shape), *dtype);
    if (tensor.bytes() > 0) {
      check_hdf5(H5Dread(set, hdf5_memory_type(*dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.raw()), file_, name);
    }
    check_sum(set, name, tensor);
    image_.tensors.push_back({name, std::move(tensor)});
  }

  // Files of other programs and of format version 1 have none.
  void check_sum(Hdf5Id set, const std::string& name, const Tensor& tensor) const {
    if (check_hdf5(H5Aexists(set, kChecksum), file_, name) == 0) return;
    const Hdf5Handle attribute(H5Aopen(set, kChecksum, H5P_DEFAULT), H5Aclose, file_, name);
    const Hdf5Handle type(H5Aget_type(attribute.get()), H5Tclose, file_, name);
    const Hdf5Handle space(H5Aget_space(attribute.get()), H5Sclose, file_, name);
    check(H5Tequal(type.get(), H5T_STD_U64LE) > 0 && H5Sget_simple_extent_npoints(space.get()) == 1, "checkpoint",
          "{}: \"{}\" has an attribute \"{}\" that is not one unsigned integer of 64 bits", file_, name, kChecksum);
    std::uint64_t expected = 0;
    check_hdf5(H5Aread(attribute.get(), H5T_NATIVE_UINT64, &expected), file_, name);
    const std::uint64_t hash = XXH3_64bits(tensor.raw(), tensor.bytes());
    check(hash == expected, "checkpoint", "{}: damaged: XXH3-64 of the values of \"{}\" is {:016x}, expects {:016x}",
          file_, name, hash, expected);
  }

  void metadata(Hdf5Id set, Hdf5Id type) {
    check(H5Tis_variable_str(type) == 0 && shape_of(set, "metadata") == Shape(), "checkpoint",
          "{}: \"metadata\" is not one string of fixed length", file_);
    const std::size_t bytes = H5Tget_size(type);
    check_size(set, "metadata", Shape(), bytes);
    std::string text(bytes, '\0');
    check_hdf5(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), file_, "metadata");
    text.resize(text.find_last_not_of('\0') + 1);
    image_.metadata = std::move(text);
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

  // What a dataset claims must be there: nothing is allocated by the word of a damaged file.
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
  Image image_;
};

}  // namespace

Image read_image(std::span<const std::byte> image, const std::string& file) {
  check(!image.empty(), "checkpoint", "{}: empty", file);
  const Hdf5Session session;
  const Hdf5Handle in = open_image(image, file);
  const Hdf5Handle root(H5Gopen2(in.get(), "/", H5P_DEFAULT), H5Gclose, file, "root group");
  Reader reader(image.size(), file);
  reader.group(root.get(), "", 0);
  return reader.take();
}

}  // namespace lockstep::checkpoint
