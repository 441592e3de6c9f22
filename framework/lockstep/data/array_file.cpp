#include "lockstep/data/array_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/data/array_form.h"
#include "lockstep/io/image_layout.h"

namespace lockstep::data {
namespace {

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }

std::string suffix_of(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  std::ranges::transform(suffix, suffix.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  return suffix.empty() ? suffix : suffix.substr(1);
}

class Hdf5Form : public ArrayFile::Form {
 public:
  using Form::Form;

  void begin(const std::vector<Field>& arrays, std::int64_t samples, const ArrayNotes& notes) override {
    std::vector<io::TensorInfo> infos;
    for (const Field& array : arrays) infos.push_back({array.name, array.shape.batched(samples), array.dtype});
    io::ImageOptions options;
    if (!notes.metadata.empty()) options.metadata = notes.metadata;
    layout_ = io::lay_out_image(infos, {}, options, path().string());
    for (const Field& array : arrays) sample_bytes_.push_back(array.bytes());
    file().write(layout_.head);
  }
  void append(std::span<const NamedTensor> part, std::int64_t first) override {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (sample_bytes_[i] == 0) continue;
      const std::uint64_t before = static_cast<std::uint64_t>(first) * sample_bytes_[i];
      file().write_at(layout_.offsets[i] + before, bytes_of(part[i].tensor));
    }
  }

 private:
  io::ImageLayout layout_;
  std::vector<std::size_t> sample_bytes_;
};

using Make = std::unique_ptr<ArrayFile::Form> (*)(const std::filesystem::path&);

template <class F>
std::unique_ptr<ArrayFile::Form> make(const std::filesystem::path& path) {
  return std::make_unique<F>(path);
}

Make form_of(const std::filesystem::path& path) {
  const std::string suffix = suffix_of(path);
  if (suffix == "h5" || suffix == "hdf5") return make<Hdf5Form>;
  if (suffix == "npy") return make_npy_form;
  if (suffix == "npz") return make_npz_form;
  if (suffix == "csv") return make_csv_form;
  return nullptr;
}

}  // namespace

void check_array_file(const std::filesystem::path& path, std::string_view site) {
  check(form_of(path) != nullptr, site,
        "the file for predictions is '{}', expected a name that ends in .h5, .npz, .npy or .csv", path.string());
}

void check_array_count(const std::filesystem::path& path, std::size_t arrays, std::string_view names) {
  check(arrays == 1 || suffix_of(path) != "npy", kArrayFileSite,
        "{}: there are {} arrays, {}, and a .npy file holds one; expected a name that ends in .npz, .h5 or .csv",
        path.string(), arrays, names);
}

void check_new_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  check(path.has_filename() && std::filesystem::is_directory(folder, error), kArrayFileSite,
        "{}: there is no folder {}, expected one that exists", path.string(), folder.string());
  const bool exists = std::filesystem::exists(std::filesystem::symlink_status(path, error));
  check(!exists, kArrayFileSite, "{} exists already, expected a new name: remove the file or choose another name",
        path.string());
}

ArrayFile::ArrayFile(std::filesystem::path path) : path_(std::move(path)) {
  check_array_file(path_, kArrayFileSite);
  check_new_file(path_);
  form_ = form_of(path_)(path_);
}

ArrayFile::~ArrayFile() = default;

void ArrayFile::begin(std::vector<Field> arrays, std::int64_t samples, const ArrayNotes& notes) {
  check_fields(kArrayFileSite, arrays);
  for (const Field& array : arrays)
    check(array.dtype != DType::BF16, kArrayFileSite, "{}: '{}' is bf16, expected another type", path_.string(),
          array.name);
  arrays_ = std::move(arrays);
  samples_ = samples;
  form_->begin(arrays_, samples_, notes);
}

void ArrayFile::check_part(std::span<const NamedTensor> part) const {
  check(part.size() == arrays_.size() && !part.empty(), kArrayFileSite, "{}: a part of {} arrays, expected {}",
        path_.string(), part.size(), arrays_.size());
  const Shape& first = part.front().tensor.shape();
  for (std::size_t i = 0; i < part.size(); ++i) {
    const Tensor& tensor = part[i].tensor;
    check(part[i].name == arrays_[i].name && tensor.dtype() == arrays_[i].dtype && tensor.shape().rank() > 0 &&
              tensor.shape() == arrays_[i].shape.batched(first[0]),
          kArrayFileSite,
          "{}: a part has '{}' {} of {}, expected '{}' of samples {} of {}, as many as of the other arrays",
          path_.string(), part[i].name, tensor.shape().str(), name_of(tensor.dtype()), arrays_[i].name,
          arrays_[i].shape.str(), name_of(arrays_[i].dtype));
  }
  check(written_ + first[0] <= samples_, kArrayFileSite, "{}: {} samples after {}, expected {} in all", path_.string(),
        first[0], written_, samples_);
}

void ArrayFile::append(std::span<const NamedTensor> part) {
  check_part(part);
  form_->append(part, written_);
  written_ += part.front().tensor.shape()[0];
}

void ArrayFile::commit() {
  check(written_ == samples_, kArrayFileSite, "{}: {} samples are written, expected {}", path_.string(), written_,
        samples_);
  form_->commit();
}

}  // namespace lockstep::data
