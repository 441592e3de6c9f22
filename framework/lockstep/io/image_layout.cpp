#include "lockstep/io/image_layout.h"

#include <hdf5.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/io/hdf5_handle.h"
#include "lockstep/io/image_types.h"

namespace lockstep::io {
namespace {

using Bytes = std::vector<std::byte>;

// The core driver's memory is a std::vector of ours, so that we get the image without a copy. HDF5 is C code: no
// exception may pass through it.
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

// `metadata_block`: bytes that HDF5 allocates at once for everything but the tensors' values. Values get offsets after
// this block and are never written by HDF5, so the driver's memory ends where values begin.
Hdf5Handle create_file(Bytes& image, std::size_t user_block, std::size_t metadata_block, const std::string& file) {
  const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, file, "H5Pcreate");
  // Growth by single bytes: the size then tells where HDF5's last byte is; the vector itself allocates in larger steps.
  check_hdf5(H5Pset_fapl_core(access.get(), 1, 0), file, "H5Pset_fapl_core");
  check_hdf5(H5Pset_meta_block_size(access.get(), metadata_block), file, "H5Pset_meta_block_size");
  check_hdf5(H5Pset_small_data_block_size(access.get(), 0), file, "H5Pset_small_data_block_size");
  auto calls = image_in(image);
  check_hdf5(H5Pset_file_image_callbacks(access.get(), &calls), file, "H5Pset_file_image_callbacks");
  const Hdf5Handle create(H5Pcreate(H5P_FILE_CREATE), H5Pclose, file, "H5Pcreate");
  check_hdf5(H5Pset_userblock(create.get(), user_block), file, "H5Pset_userblock");
  // HDF5 distinguishes images by name; no file has this name, and no image outlives its session.
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
    check_hdf5(H5Pset_alloc_time(sets_.get(), H5D_ALLOC_TIME_EARLY), file_, "H5Pset_alloc_time");
  }

  // Returns the offset of the tensor's values in the file; undefined for a tensor without values.
  std::uint64_t tensor(const TensorInfo& info, std::optional<std::uint64_t> hash) {
    const auto& dims = info.shape.dims();
    const std::vector<hsize_t> extent(dims.begin(), dims.end());
    const Hdf5Handle space(
        extent.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(info.shape.rank(), extent.data(), nullptr), H5Sclose,
        file_, info.name);
    Hdf5Handle set = create(info.name, hdf5_file_type(info.dtype), space);
    if (hash) checksum(set.get(), info.name, *hash);
    const std::uint64_t offset = H5Dget_offset(set.get());
    check(info.bytes() == 0 || offset != HADDR_UNDEF, "checkpoint", "{}: HDF5 gave \"{}\" no offset for its {} bytes",
          file_, info.name, info.bytes());
    set.close(file_, info.name);
    return offset;
  }

  void metadata(const std::string& text) {
    check(text.find('\0') == std::string::npos, "checkpoint", "{}: metadata contains a zero byte", file_);
    const Hdf5Handle type(H5Tcopy(H5T_C_S1), H5Tclose, file_, "H5Tcopy");
    check_hdf5(H5Tset_size(type.get(), std::max<std::size_t>(text.size(), 1)), file_, "metadata: H5Tset_size");
    check_hdf5(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), file_, "metadata: H5Tset_strpad");
    check_hdf5(H5Tset_cset(type.get(), H5T_CSET_UTF8), file_, "metadata: H5Tset_cset");
    Hdf5Handle set = create("metadata", type.get(), scalar_);
    check_hdf5(H5Dwrite(set.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, text.c_str()), file_, "metadata");
    set.close(file_, "metadata");
  }

 private:
  Hdf5Handle create(const std::string& name, Hdf5Id type, const Hdf5Handle& space) {
    return {H5Dcreate2(root_, name.c_str(), type, space.get(), links_.get(), sets_.get(), H5P_DEFAULT), H5Dclose, file_,
            name};
  }

  void checksum(Hdf5Id set, const std::string& name, std::uint64_t hash) {
    Hdf5Handle attribute(H5Acreate2(set, kChecksum, H5T_STD_U64LE, scalar_.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
                         file_, name);
    check_hdf5(H5Awrite(attribute.get(), H5T_NATIVE_UINT64, &hash), file_, name);
    attribute.close(file_, name);
  }

  Hdf5Id root_;
  const std::string& file_;
  Hdf5Handle links_, sets_, scalar_;
};

// Returns an upper bound of the bytes that HDF5 uses for names, shapes and checksums; unused bytes stay in the file.
std::size_t expected_metadata(std::span<const TensorInfo> infos) {
  std::size_t bytes = 4096;
  for (const TensorInfo& info : infos) bytes += 640 + 3 * info.name.size();
  return bytes;
}

// Returns false if the block was too small, so that HDF5 put further metadata after values.
bool try_layout(std::span<const TensorInfo> infos, std::span<const std::uint64_t> checksums,
                const ImageOptions& options, std::size_t metadata_block, const std::string& file, ImageLayout& layout) {
  const Hdf5Session session;
  Bytes image;
  Hdf5Handle out = create_file(image, options.user_block, metadata_block, file);
  layout.offsets.clear();
  std::uint64_t first = 0, end = 0;  // offsets of the first value and of the end of all values
  {
    Writer writer(out.get(), file);
    if (options.metadata) writer.metadata(*options.metadata);
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const TensorInfo& info = infos[i];
      const std::uint64_t offset = writer.tensor(info, checksums.empty() ? std::nullopt : std::optional(checksums[i]));
      layout.offsets.push_back(offset - options.user_block);
      if (info.bytes() == 0) continue;
      check(offset >= end, "checkpoint", "{}: HDF5 put \"{}\" at {}, expected it behind {}", file, info.name, offset,
            end);
      if (end == 0) first = offset;
      end = offset + info.bytes();
    }
  }
  // The size of HDF5's image, from the end of the user block.
  const auto counted = check_hdf5(H5Fget_file_image(out.get(), nullptr, 0), file, "H5Fget_file_image");
  out.close(file, "H5Fclose");
  if (end == 0)
    first = end = std::max<std::uint64_t>(image.size(), options.user_block + static_cast<std::uint64_t>(counted));
  if (image.size() > first) return false;
  check(end >= options.user_block + static_cast<std::uint64_t>(counted), "checkpoint",
        "{}: HDF5's file ends at {}, expected the last tensor's end, {}", file, counted, end - options.user_block);
  image.resize(first);
  layout.head.assign(image.begin() + static_cast<std::ptrdiff_t>(options.user_block), image.end());
  layout.bytes = end - options.user_block;
  return true;
}

}  // namespace

ImageLayout lay_out_image(std::span<const TensorInfo> infos, std::span<const std::uint64_t> checksums,
                          const ImageOptions& options, const std::string& file) {
  for (const TensorInfo& info : infos) check_name(info.name, file);
  ImageLayout layout;
  std::size_t block = expected_metadata(infos);
  while (!try_layout(infos, checksums, options, block, file, layout)) block *= 2;
  return layout;
}

}  // namespace lockstep::io
