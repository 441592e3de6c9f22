#include "lockstep/io/hdf5_listing.h"

#include <hdf5.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::io {
namespace {

constexpr int kMostLevels = 16;             // of groups in a listing
constexpr std::size_t kMostListed = 20;     // datasets in a listing
constexpr std::size_t kMostVisited = 2000;  // links that a listing follows

// An id that is closed with this object, without an error: a listing shows what it can.
class QuietHandle {
 public:
  QuietHandle(Hdf5Id id, Hdf5Handle::Close closer) : id_(id), close_(closer) {}
  ~QuietHandle() {
    if (id_ >= 0) close_(id_);
  }
  QuietHandle(const QuietHandle&) = delete;
  QuietHandle& operator=(const QuietHandle&) = delete;
  Hdf5Id get() const { return id_; }
  bool open() const { return id_ >= 0; }

 private:
  Hdf5Id id_;
  Hdf5Handle::Close close_;
};

// No exception may pass through HDF5.
herr_t append_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  try {
    static_cast<std::vector<std::string>*>(out)->push_back(name);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

herr_t append_first_names(hid_t group, const char* name, const H5L_info_t* info, void* out) {
  if (static_cast<std::vector<std::string>*>(out)->size() >= kMostVisited) return 1;  // ends the iteration
  return append_name(group, name, info, out);
}

std::string dataset_text(Hdf5Id set, const std::string& name) {
  const QuietHandle type(H5Dget_type(set), H5Tclose), space(H5Dget_space(set), H5Sclose);
  std::string text = printable(name);
  const int rank = space.open() ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (rank >= 0) {
    std::vector<hsize_t> extent(static_cast<std::size_t>(rank));
    H5Sget_simple_extent_dims(space.get(), extent.data(), nullptr);
    text += formatted(" ({})", joined(extent, ", "));
  }
  const std::optional<DType> dtype = type.open() ? hdf5_read_type(type.get()) : std::nullopt;
  text += " ";
  text += dtype ? name_of(*dtype) : "(no numbers)";
  return text;
}

class Listing {
 public:
  void group(Hdf5Id id, const std::string& path, int level) {
    std::vector<std::string> names;
    H5Literate(id, H5_INDEX_NAME, H5_ITER_INC, nullptr, append_first_names, &names);
    for (const std::string& name : names) {
      if (++visited_ > kMostVisited) more_ = true;
      if (more_) return;
      std::string whole = path;
      if (!path.empty()) whole += '/';
      whole += name;
      const QuietHandle object(H5Oopen(id, name.c_str(), H5P_DEFAULT), H5Oclose);
      if (!object.open()) continue;
      const H5I_type_t kind = H5Iget_type(object.get());
      if (kind == H5I_GROUP && level < kMostLevels) {
        group(object.get(), whole, level + 1);
      } else if (kind == H5I_DATASET) {
        if (texts_.size() == kMostListed) more_ = true;
        if (!more_) texts_.push_back(dataset_text(object.get(), whole));
      }
    }
  }

  std::string text() const {
    std::string all = texts_.empty() ? "no dataset" : joined(texts_, ", ");
    if (more_) all += " and more";
    return all;
  }

 private:
  std::vector<std::string> texts_;
  std::size_t visited_ = 0;
  bool more_ = false;
};

}  // namespace

std::optional<DType> hdf5_read_type(Hdf5Id type) {
  const H5T_class_t kind = H5Tget_class(type);
  const std::size_t bytes = H5Tget_size(type);
  if (kind == H5T_FLOAT) {
    if (bytes == 0 || bytes > 8) return std::nullopt;
    return bytes <= 4 ? DType::F32 : DType::F64;
  }
  if (kind == H5T_ENUM) {  // h5py's booleans
    const QuietHandle base(H5Tget_super(type), H5Tclose);
    if (!base.open() || H5Tget_class(base.get()) != H5T_INTEGER) return std::nullopt;
    return bytes == 1 ? DType::U8 : hdf5_read_type(base.get());
  }
  if (kind != H5T_INTEGER || bytes == 0 || bytes > 8) return std::nullopt;
  const bool is_signed = H5Tget_sign(type) != H5T_SGN_NONE;
  if (bytes == 1 && !is_signed) return DType::U8;
  return bytes < 4 || (bytes == 4 && is_signed) ? DType::I32 : DType::I64;
}

bool hdf5_has(Hdf5Id file, const std::string& path) {
  std::string part;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin) {
      if (!part.empty()) part += '/';
      part.append(path, begin, end - begin);
      if (H5Lexists(file, part.c_str(), H5P_DEFAULT) <= 0 || H5Oexists_by_name(file, part.c_str(), H5P_DEFAULT) <= 0)
        return false;
    }
    begin = end + 1;
  }
  return !part.empty();
}

std::string hdf5_listing(Hdf5Id file) {
  Listing listing;
  const QuietHandle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  if (root.open()) listing.group(root.get(), "", 0);
  return listing.text();
}

std::vector<std::string> hdf5_groups(Hdf5Id file, const std::string& path, const std::string& group) {
  const bool is_root = group.find_first_not_of('/') == group.npos;
  check(is_root || hdf5_has(file, group), "hdf5", "{}: no group '{}', the file has: {}", path, group,
        hdf5_listing(file));
  const std::string name = is_root ? "/" : group;
  const Hdf5Handle opened(H5Gopen2(file, name.c_str(), H5P_DEFAULT), H5Gclose, path,
                          formatted("'{}', expected a group", name), "hdf5");
  std::vector<std::string> names, groups;
  check_hdf5(H5Literate(opened.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, append_name, &names), path, name, "hdf5");
  for (std::string& one : names) {
    const QuietHandle object(H5Oopen(opened.get(), one.c_str(), H5P_DEFAULT), H5Oclose);
    if (object.open() && H5Iget_type(object.get()) == H5I_GROUP) groups.push_back(std::move(one));
  }
  std::ranges::sort(groups);
  return groups;
}

}  // namespace lockstep::io
