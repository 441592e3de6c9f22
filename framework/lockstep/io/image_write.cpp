#include <hdf5.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/image.h"
#include "lockstep/io/image_types.h"

namespace lockstep::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "checksums are of values as they lie in memory");

using Bytes = std::vector<std::byte>;

// The core driver's memory is a vector of ours, so that the finished image is there without a copy. HDF5 is C: nothing
// may be thrown through it.
void* resize_image(Bytes& image, std::size_t size) {
  try {
    image.resize(size);
    return image.data();
  } catch (const std::exception&) {
    return nullptr;
  }
}

H5FD_file_image_callbacks_t image_in(Bytes& image) {
  H5FD_file_image_callbacks_t calls{};
  calls.image_malloc = [](std::size_t size, H5FD_file_image_op_t, void* data) {
    return resize_image(*static_cast<Bytes*>(data), size);
  };
  calls.image_memcpy = [](void* to, const void* from, std::size_t size, H5FD_file_image_op_t, void*) {
    return std::memcpy(to, from, size);
  };
  calls.image_realloc = [](void*, std::size_t size, H5FD_file_image_op_t, void* data) {
    return resize_image(*static_cast<Bytes*>(data), size);
  };
  calls.image_free = [](void*, H5FD_file_image_op_t, void*) -> herr_t { return 0; };
  calls.udata_copy = [](void* data) { return data; };
  calls.udata_free = [](void*) -> herr_t { return 0; };
  calls.udata = &image;
  return calls;
}

void check_name(const std::string& name, const std::string& file) {
  const auto bad = [&](std::string_view why) { fail("checkpoint", "{}: tensor name \"{}\" {}", file, name, why); };
  if (name.empty()) bad("is empty");
  if (name.find('\0') != std::string::npos) bad("contains a zero byte");
  if (name == "metadata" || name.starts_with("metadata/")) bad("is reserved");
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = std::string_view(name).substr(begin, end - begin);
    if (part.empty()) bad("has an empty part between slashes");
    if (part == ".") bad("has a part \".\", which HDF5 takes for the group itself");
    begin = end + 1;
  }
}

Hdf5Handle create_file(Bytes& image, std::size_t expected, const ImageOptions& options, const std::string& file) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, file, "H5Pcreate");
  // The increment is what the image grows by: the expected size, so that it is allocated once.
  check_hdf5(H5Pset_fapl_core(access.get(), expected, 0), file, "H5Pset_fapl_core");
  auto calls = image_in(image);
  check_hdf5(H5Pset_file_image_callbacks(access.get(), &calls), file, "H5Pset_file_image_callbacks");
  const Hdf5Handle create(H5Pcreate(H5P_FILE_CREATE), H5Pclose, file, "H5Pcreate");
  check_hdf5(H5Pset_userblock(create.get(), options.user_block), file, "H5Pset_userblock");
  // HDF5 tells images apart by name; this one is never a file, and sessions are one at a time.
  return {H5Fcreate("lockstep-image", H5F_ACC_TRUNC, create.get(), access.get()), H5Fclose, file, "H5Fcreate"};
}

class Writer {
 public:
  Writer(Hdf5Id root, const std::string& file)
      : root_(root),
        file_(file),
        links_(H5Pcreate(H5P_LINK_CREATE), H5Pclose, file, "H5Pcreate"),
        sets_(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, file, "H5Pcreate"),
        scalar_(H5Screate(H5S_SCALAR), H5Sclose, file, "H5Screate") {
    check_hdf5(H5Pset_create_intermediate_group(links_.get(), 1), file_, "H5Pset_create_intermediate_group");
    check_hdf5(H5Pset_char_encoding(links_.get(), H5T_CSET_UTF8), file_, "H5Pset_char_encoding");
    check_hdf5(H5Pset_obj_track_times(sets_.get(), false), file_, "H5Pset_obj_track_times");
    check_hdf5(H5Pset_fill_time(sets_.get(), H5D_FILL_TIME_NEVER), file_, "H5Pset_fill_time");
  }

  void tensor(const NamedTensor& entry) {
    const Tensor& tensor = entry.tensor;
    check_name(entry.name, file_);
    check(tensor.bytes() == 0 || !tensor.empty(), "checkpoint", "{}: tensor \"{}\" of shape {} has no memory", file_,
          entry.name, tensor.shape().str());
    const auto& dims = tensor.shape().dims();
    const std::vector<hsize_t> extent(dims.begin(), dims.end());
    const Hdf5Handle space(
        extent.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(tensor.shape().rank(), extent.data(), nullptr),
        H5Sclose, file_, entry.name);
    Hdf5Handle set =
        write(entry.name, hdf5_file_type(tensor.dtype()), hdf5_memory_type(tensor.dtype()), space, tensor.raw());
    checksum(set.get(), entry);
    set.close(file_, entry.name);
  }

  void metadata(const std::string& text) {
    check(text.find('\0') == std::string::npos, "checkpoint", "{}: metadata contains a zero byte", file_);
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, file_, "H5Tcopy");
    check_hdf5(H5Tset_size(type.get(), std::max<std::size_t>(text.size(), 1)), file_, "metadata: H5Tset_size");
    check_hdf5(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), file_, "metadata: H5Tset_strpad");
    check_hdf5(H5Tset_cset(type.get(), H5T_CSET_UTF8), file_, "metadata: H5Tset_cset");
    const Hdf5Handle space(H5Screate(H5S_SCALAR), H5Sclose, file_, "H5Screate");
    write("metadata", type.get(), type.get(), space, text.c_str()).close(file_, "metadata");
  }

 private:
  Hdf5Handle write(const std::string& name, Hdf5Id type, Hdf5Id memory, const Hdf5Handle& space, const void* values) {
    Hdf5Handle set(H5Dcreate2(root_, name.c_str(), type, space.get(), links_.get(), sets_.get(), H5P_DEFAULT), H5Dclose,
                   file_, name);
    if (H5Sget_simple_extent_npoints(space.get()) > 0) {
      check_hdf5(H5Dwrite(set.get(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), file_, name);
    }
    return set;
  }

  void checksum(Hdf5Id set, const NamedTensor& entry) {
    const std::uint64_t hash = XXH3_64bits(entry.tensor.raw(), entry.tensor.bytes());
    Hdf5Handle attribute(H5Acreate2(set, kChecksum, H5T_STD_U64LE, scalar_.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         file_, entry.name);
    check_hdf5(H5Awrite(attribute.get(), H5T_NATIVE_UINT64, &hash), file_, entry.name);
    attribute.close(file_, entry.name);
  }

  Hdf5Id root_;
  const std::string& file_;
  Hdf5Handle links_, sets_, scalar_;
};

}  // namespace

std::vector<std::byte> write_image(const TensorSource& tensors, const ImageOptions& options, const std::string& file) {
  std::size_t expected = options.user_block + 16384 + (options.metadata ? options.metadata->size() : 0);
  expected += tensors.bytes + 1024 * tensors.count;

  const Hdf5Session session;
  Bytes image;
  Hdf5Handle out = create_file(image, expected, options, file);
  {
    Writer writer(out.get(), file);
    if (options.metadata) writer.metadata(*options.metadata);
    for (std::size_t i = 0; i < tensors.count; ++i) writer.tensor(tensors.tensor(i));
  }
  check_hdf5(H5Fflush(out.get(), H5F_SCOPE_LOCAL), file, "H5Fflush");
  // HDF5 counts from the end of the user block. Behind this size lies only what the increment rounded up.
  const auto counted = check_hdf5(H5Fget_file_image(out.get(), nullptr, 0), file, "H5Fget_file_image");
  const std::size_t size = options.user_block + static_cast<std::size_t>(counted);
  out.close(file, "H5Fclose");
  check(size <= image.size(), "checkpoint", "{}: HDF5 image has {} bytes, expected {}", file, image.size(), size);
  image.resize(size);
  return image;
}

}  // namespace lockstep::checkpoint
