#include "data/datasets/npy_fields.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "data/datasets/field_options.h"
#include "data/datasets/npy.h"
#include "lockstep/core/error.h"
#include "lockstep/core/float16.h"
#include "lockstep/data/convert_array.h"
#include "lockstep/data/file_source.h"
#include "lockstep/io/read_file.h"

namespace lockstep::datasets {
namespace {

// The DType as which elements are read.
DType npy_dtype(const NpyArray& array) {
  const std::int64_t bytes = array.item_bytes;
  if (array.kind == 'f') {
    check(bytes > 1, array.name, "{}, expected floats of 16, 32 or 64 bits", describe_npy(array));
    return bytes <= 4 ? DType::F32 : DType::F64;
  }
  if (array.kind == 'b' || (array.kind == 'u' && bytes == 1)) {
    check(bytes == 1, array.name, "{}, expected booleans of one byte", describe_npy(array));
    return DType::U8;
  }
  return bytes < 4 || (bytes == 4 && array.kind == 'i') ? DType::I32 : DType::I64;
}

// One element's bytes as a number, the most significant byte first in the result.
std::uint64_t bits_of(const NpyArray& array, const std::byte* element) {
  const auto width = static_cast<std::size_t>(array.item_bytes);
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < width; ++i)
    bits = bits << 8 | std::to_integer<std::uint64_t>(element[array.big_endian ? i : width - 1 - i]);
  return bits;
}

// Writes one element as the type of npy_dtype(); false: an unsigned number above 2^63 - 1.
bool decode_element(const NpyArray& array, const std::byte* element, DType dtype, std::byte* out) {
  const std::uint64_t bits = bits_of(array, element);
  const int unused = 64 - 8 * static_cast<int>(array.item_bytes);
  const auto put = [&](auto value) { std::memcpy(out, &value, sizeof value); };
  if (dtype == DType::F64) {
    put(bits);
  } else if (dtype == DType::F32) {
    Float16 half;
    half.bits = static_cast<std::uint16_t>(bits);
    if (array.item_bytes == 2)
      put(static_cast<float>(half));
    else
      put(static_cast<std::uint32_t>(bits));
  } else if (dtype == DType::U8) {
    put(static_cast<std::uint8_t>(bits));
  } else {
    const std::int64_t value =
        array.kind == 'u' ? static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(bits << unused) >> unused;
    if (array.kind == 'u' && value < 0) return false;
    if (dtype == DType::I32)
      put(static_cast<std::int32_t>(value));
    else
      put(value);
  }
  return true;
}

// Whether elements in the file are those in memory. Unsigned numbers of 64 bits are not: they may be too large.
bool lies_as_in_memory(const NpyArray& array, DType dtype) {
  if (array.kind == 'u' && array.item_bytes == 8) return false;
  const bool ours = array.big_endian == (std::endian::native == std::endian::big);
  return static_cast<std::int64_t>(size_of(dtype)) == array.item_bytes && (ours || array.item_bytes == 1);
}

}  // namespace

Tensor tensor_of(const NpyArray& array) {
  const DType dtype = npy_dtype(array);
  Tensor tensor(Shape(array.shape), dtype);
  const auto* from = reinterpret_cast<const std::byte*>(array.bytes.data());
  if (lies_as_in_memory(array, dtype)) {
    if (!array.bytes.empty()) std::memcpy(tensor.raw(), from, array.bytes.size());
    return tensor;
  }
  const auto item = static_cast<std::size_t>(array.item_bytes);
  for (std::size_t i = 0; i < array.bytes.size() / item; ++i) {
    check(decode_element(array, from + i * item, dtype, tensor.raw() + i * size_of(dtype)), array.name,
          "element {} is above 2^63 - 1, expected a number of 64 bits with a sign", i);
  }
  return tensor;
}

// One array: its elements in a file or in memory, and the part of it that samples have.
class NpyDataset::Source {
 public:
  Source(const std::filesystem::path& path, const std::string& member) {
    if (!member.empty()) {
      array_ = read_npz(path, member);
    } else {
      data::FileSource file(path, data::FileSource::Form::Plain);
      array_ = read_npy_header(file);
      offset_ = file.offset();
      const std::int64_t bytes = npy_bytes(array_), found = file.file_size() - offset_;
      check(found == bytes, path.string(), "{} bytes after the header, expected {} of {}", found, bytes,
            describe_npy(array_));
      file_.emplace(path);
    }
    dtype_ = npy_dtype(array_);
  }

  const NpyArray& array() const { return array_; }
  DType dtype() const { return dtype_; }

  // Chooses the axis of samples and the part of each sample. Returns the shape of a field.
  Shape select(const data::FieldSelection& selection, std::int64_t sample_axis) {
    const Shape whole(array_.shape);
    axis_ = sample_axis < 0 ? whole.rank() - 1 : sample_axis;
    check(axis_ >= 0 && axis_ < whole.rank(), array_.name, "{}, expected an axis {} that counts samples",
          describe_npy(array_), sample_axis);
    ranges_ = data::resolve(selection, whole, axis_, array_.name);
    samples_ = ranges_[static_cast<std::size_t>(axis_)];
    ranges_.erase(ranges_.begin() + axis_);
    std::vector<std::int64_t> dims = array_.shape;
    dims.erase(dims.begin() + axis_);
    sample_ = Shape(std::move(dims));
    return data::selected_shape(ranges_, -1);
  }
  std::int64_t samples() const { return samples_.count; }

  void read(std::int64_t index, const data::Field& field, std::byte* out) const {
    const auto item = static_cast<std::size_t>(array_.item_bytes);
    const std::vector<std::byte> whole = sample_bytes(samples_.begin + index * samples_.step);
    const std::int64_t elements = field.shape.elements();
    std::vector<std::byte> part(static_cast<std::size_t>(elements) * item);
    data::copy_selected(ranges_, sample_, item, whole.data(), part.data());
    if (lies_as_in_memory(array_, dtype_)) return convert(part.data(), index, field, out);
    std::vector<std::byte> decoded(static_cast<std::size_t>(elements) * size_of(dtype_));
    for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) {
      const bool fits = decode_element(array_, part.data() + i * item, dtype_, decoded.data() + i * size_of(dtype_));
      check(fits, array_.name, "sample {}: element {} is above 2^63 - 1, expected numbers that fit i64", index, i);
    }
    convert(decoded.data(), index, field, out);
  }

 private:
  void convert(const std::byte* in, std::int64_t index, const data::Field& field, std::byte* out) const {
    const std::int64_t bad = data::convert_array(dtype_, in, field.dtype, out, field.shape.elements());
    check(bad < 0, array_.name, "sample {}: element {} does not fit {}, expected numbers that do", index, bad,
          name_of(field.dtype));
  }

  // The elements of one sample as they are in the file: one piece for each element of the axes before the samples'.
  std::vector<std::byte> sample_bytes(std::int64_t at) const {
    std::size_t pieces = 1, inner = static_cast<std::size_t>(array_.item_bytes);
    for (int i = 0; i < sample_.rank(); ++i) (i < axis_ ? pieces : inner) *= static_cast<std::size_t>(sample_[i]);
    const auto count = static_cast<std::size_t>(array_.shape[static_cast<std::size_t>(axis_)]);
    std::vector<std::byte> bytes(pieces * inner);
    for (std::size_t p = 0; inner > 0 && p < pieces; ++p) {
      const std::size_t begin = (p * count + static_cast<std::size_t>(at)) * inner;
      if (!file_) {
        std::memcpy(bytes.data() + p * inner, array_.bytes.data() + begin, inner);
        continue;
      }
      const std::vector<std::byte> piece = file_->peek(static_cast<std::uint64_t>(offset_) + begin, inner);
      check(piece.size() == inner, array_.name, "became shorter: offset {}: {} bytes, expected {}",
            static_cast<std::uint64_t>(offset_) + begin, piece.size(), inner);
      std::memcpy(bytes.data() + p * inner, piece.data(), inner);
    }
    return bytes;
  }

  NpyArray array_;
  std::int64_t offset_ = 0;
  std::optional<io::FileReader> file_;  // none: the elements are in array_.bytes
  DType dtype_ = DType::F32;
  std::int64_t axis_ = 0;
  data::AxisRange samples_{};
  std::vector<data::AxisRange> ranges_;  // of the axes of sample_
  Shape sample_;                         // the whole array's, without the axis of samples
};

NpyDataset::NpyDataset(NpyOptions options) : options_(std::move(options)) {
  check(!options_.inputs.empty(), "npy", "there are no inputs, expected the name of at least one file");
  check(options_.sample_axis >= -1, "npy", "sample axis {}, expected an axis from 0 on, or -1 for the last one",
        options_.sample_axis);
  for (const auto* texts : {&options_.inputs, &options_.targets}) {
    for (data::FieldSelection& field : data::parse_fields(*texts)) add_field(std::move(field));
  }
  data::check_fields("npy", fields_);
  check(size_ > 0, "npy", "{} has no samples, expected at least one", sources_.front()->array().name);
}

NpyDataset::~NpyDataset() = default;

void NpyDataset::add_field(data::FieldSelection selection) {
  constexpr std::string_view kArchive = ".npz/";
  const std::size_t archive = selection.path.find(kArchive);
  const bool packed = archive != std::string::npos;
  const std::string file = packed ? selection.path.substr(0, archive + kArchive.size() - 1) : selection.path;
  std::string member = packed ? selection.path.substr(archive + kArchive.size()) : "";
  check(!packed || !member.empty(), "npy", "'{}': expected the name of an array after {}", selection.path, kArchive);
  check(packed || !file.ends_with(".npz"), "npy", "'{}': expected the name of an array: {}/NAME", selection.path,
        selection.path);
  if (selection.name.empty()) selection.name = packed ? member : std::filesystem::path(file).stem().string();
  const bool is_taken = std::ranges::find(fields_, selection.name, &data::Field::name) != fields_.end();
  check_name_is_free("npy", is_taken, selection.name, selection.path);
  auto source = std::make_unique<Source>(options_.dir / file, member);
  const Shape shape = source->select(selection, options_.sample_axis);
  if (fields_.empty()) size_ = source->samples();
  check(source->samples() == size_, "npy", "{} has {} samples, {} has {}; expected equal numbers", source->array().name,
        source->samples(), sources_.empty() ? "" : sources_.front()->array().name, size_);
  fields_.push_back({selection.name, shape, selection.dtype.value_or(source->dtype())});
  sources_.push_back(std::move(source));
}

std::string NpyDataset::describe() const {
  std::vector<std::string> fields;
  for (const data::Field& field : fields_)
    fields.push_back(formatted("{} {} {}", field.name, field.shape.str(), name_of(field.dtype)));
  return formatted("npy: {} samples: {}", size_, joined(fields, ", "));
}

void NpyDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  for (std::size_t field = 0; field < fields_.size(); ++field) {
    if (fields_[field].bytes() > 0) sources_[field]->read(index, fields_[field], out[field]);
  }
}

}  // namespace lockstep::datasets
