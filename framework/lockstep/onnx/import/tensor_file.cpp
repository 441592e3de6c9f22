#include "lockstep/onnx/import/tensor_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/core/float16.h"
#include "lockstep/onnx/import/fields.h"

namespace lockstep::onnx {
namespace {

// TensorProto.DataType, of those that are read.
enum class FileType : std::int64_t {
  F32 = 1,
  U8 = 2,
  I8 = 3,
  I32 = 6,
  I64 = 7,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  BF16 = 16
};

// A message TensorProto, before its numbers are brought into one form.
struct RawTensor {
  std::string name;
  std::vector<std::int64_t> dims;
  std::int64_t type = 0;
  std::string_view bytes;  // raw_data, or those of a file of weights
  bool has_bytes = false;
  std::vector<std::int64_t> wholes;  // int32_data, int64_data
  std::vector<double> reals;         // float_data, double_data
  std::vector<std::pair<std::string, std::string>> elsewhere;
};

RawTensor raw_tensor(std::string_view message) {
  RawTensor raw;
  Fields fields(message);
  for (Field field; fields.next(field);) {
    switch (field.number) {
      case 1:
        field.append_to(raw.dims);
        break;
      case 2:
        raw.type = field.whole();
        break;
      case 4:
        field.append_to(raw.reals, Field::Kind::Four);
        break;
      case 5:
      case 7:
        field.append_to(raw.wholes);
        break;
      case 8:
        raw.name = field.text();
        break;
      case 9:
        raw.bytes = field.text();
        raw.has_bytes = true;
        break;
      case 10:
        field.append_to(raw.reals, Field::Kind::Eight);
        break;
      case 13: {
        std::pair<std::string, std::string> entry;
        Fields parts(field.text());
        for (Field part; parts.next(part);) (part.number == 1 ? entry.first : entry.second) = part.text();
        raw.elsewhere.push_back(std::move(entry));
        break;
      }
      default:
        break;
    }
  }
  return raw;
}

std::int64_t whole_of(const std::string& name, const std::string& text) {
  check(!text.empty() && text.find_first_not_of("0123456789") == text.npos && text.size() < 19, kSite,
        "tensor {}: {} is no position in a file of weights", name, text);
  return std::stoll(text);
}

// The bytes that a file beside the model has of this tensor.
std::string bytes_elsewhere(const RawTensor& raw, const std::filesystem::path& folder, std::size_t expected) {
  std::string location;
  std::int64_t offset = 0;
  auto length = static_cast<std::int64_t>(expected);
  for (const auto& [key, value] : raw.elsewhere) {
    if (key == "location") location = value;
    if (key == "offset") offset = whole_of(raw.name, value);
    if (key == "length") length = whole_of(raw.name, value);
  }
  const std::filesystem::path relative(location);
  bool inside = !location.empty() && relative.is_relative();
  for (const auto& part : relative) inside = inside && part != "..";
  check(inside, kSite, "tensor {}: its weights are in '{}', expected a file in the folder of the model", raw.name,
        location);
  check(length == static_cast<std::int64_t>(expected), kSite, "tensor {}: {} has {} bytes of it, expected {}", raw.name,
        location, length, expected);
  // Before memory is taken, as a damaged size may be any.
  std::error_code error;
  const std::uintmax_t whole = std::filesystem::file_size(folder / relative, error);
  check(!error && std::cmp_less_equal(offset, whole) && expected <= whole - static_cast<std::uintmax_t>(offset), kSite,
        "tensor {}: cannot read {} bytes at {} of {}, expected a file that has them", raw.name, expected, offset,
        (folder / relative).string());
  std::string bytes(expected, '\0');
  std::ifstream file(folder / relative, std::ios::binary);
  file.seekg(offset);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  check(file.good() || bytes.empty(), kSite, "tensor {}: cannot read {} bytes at {} of {}", raw.name, expected, offset,
        (folder / relative).string());
  return bytes;
}

struct Form {
  std::size_t width;  // bytes of an element in the file
  DType dtype;        // here
};

Form form_of(const RawTensor& raw) {
  switch (static_cast<FileType>(raw.type)) {
    case FileType::F32:
      return {4, DType::F32};
    case FileType::F64:
      return {8, DType::F64};
    case FileType::F16:
    case FileType::BF16:
      return {2, DType::F32};
    case FileType::I64:
      return {8, DType::I64};
    case FileType::I32:
      return {4, DType::I32};
    case FileType::U8:
      return {1, DType::U8};
    case FileType::I8:
    case FileType::Bool:
      return {1, DType::I32};
  }
  fail(kSite,
       "tensor {}: its type has the number {} in ONNX, expected float32, 64, 16, bfloat16, int64, 32, 8, uint8 "
       "or bool",
       raw.name, raw.type);
}

// Converts `From` of the file, whose bytes need not be aligned, to `To`.
template <class From, class To, class Convert>
void convert(std::string_view bytes, std::span<To> values, Convert to) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    From value;
    std::memcpy(&value, bytes.data() + i * sizeof(From), sizeof(From));
    values[i] = to(value);
  }
}

void fill_from_bytes(FileType type, std::string_view bytes, Tensor& tensor) {
  if (type == FileType::F16) {
    convert<std::uint16_t>(bytes, tensor.data<float>(), [](std::uint16_t bits) {
      Float16 half;
      half.bits = bits;
      return static_cast<float>(half);
    });
  } else if (type == FileType::BF16) {
    convert<std::uint16_t>(bytes, tensor.data<float>(), [](std::uint16_t bits) {
      BFloat16 half;
      half.bits = bits;
      return static_cast<float>(half);
    });
  } else if (type == FileType::I8 || type == FileType::Bool) {
    convert<std::int8_t>(bytes, tensor.data<std::int32_t>(), [](std::int8_t value) { return std::int32_t{value}; });
  } else if (!bytes.empty()) {
    std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  }
}

// From the lists of numbers, of which half-precision types have their bits.
void fill_from_lists(const RawTensor& raw, Tensor& tensor) {
  const auto type = static_cast<FileType>(raw.type);
  const bool is_real = type == FileType::F32 || type == FileType::F64;
  const std::size_t count = is_real ? raw.reals.size() : raw.wholes.size();
  check(count == static_cast<std::size_t>(tensor.elements()), kSite, "tensor {}: {} numbers, expected {} of shape {}",
        raw.name, count, tensor.elements(), tensor.shape().str());
  const auto set = [&](auto values, auto value_at) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = value_at(i);
  };
  if (type == FileType::F32) {
    set(tensor.data<float>(), [&](std::size_t i) { return static_cast<float>(raw.reals[i]); });
  } else if (type == FileType::F64) {
    set(tensor.data<double>(), [&](std::size_t i) { return raw.reals[i]; });
  } else if (type == FileType::I64) {
    set(tensor.data<std::int64_t>(), [&](std::size_t i) { return raw.wholes[i]; });
  } else if (type == FileType::U8) {
    set(tensor.data<std::uint8_t>(), [&](std::size_t i) { return static_cast<std::uint8_t>(raw.wholes[i]); });
  } else if (type == FileType::F16 || type == FileType::BF16) {
    std::string bytes;
    for (const std::int64_t bits : raw.wholes) {
      bytes += static_cast<char>(bits & 0xff);
      bytes += static_cast<char>((bits >> 8) & 0xff);
    }
    fill_from_bytes(type, bytes, tensor);
  } else {
    set(tensor.data<std::int32_t>(), [&](std::size_t i) { return static_cast<std::int32_t>(raw.wholes[i]); });
  }
}

}  // namespace

NamedFileTensor read_tensor(std::string_view message, const std::filesystem::path& folder) {
  RawTensor raw = raw_tensor(message);
  for (const std::int64_t size : raw.dims)
    check(size >= 0, kSite, "tensor {}: a size of {}, expected at least 0", raw.name, size);
  const Form form = form_of(raw);
  const Shape shape(raw.dims);
  const std::size_t expected = static_cast<std::size_t>(shape.elements()) * form.width;
  std::string elsewhere;
  if (!raw.elsewhere.empty()) {
    elsewhere = bytes_elsewhere(raw, folder, expected);
    raw.bytes = elsewhere;
    raw.has_bytes = true;
  }
  check(!raw.has_bytes || raw.bytes.size() == expected, kSite, "tensor {}: {} bytes, expected {} of shape {}", raw.name,
        raw.bytes.size(), expected, shape.str());
  const bool in_lists = !raw.has_bytes && expected > 0;
  check(!in_lists || raw.wholes.size() + raw.reals.size() == static_cast<std::size_t>(shape.elements()), kSite,
        "tensor {}: {} numbers, expected {} of shape {}", raw.name, raw.wholes.size() + raw.reals.size(),
        shape.elements(), shape.str());
  NamedFileTensor result{std::move(raw.name), Tensor(shape, form.dtype)};
  raw.name = result.name;
  if (raw.has_bytes) {
    fill_from_bytes(static_cast<FileType>(raw.type), raw.bytes, result.tensor);
  } else if (in_lists) {
    fill_from_lists(raw, result.tensor);
  }
  return result;
}

}  // namespace lockstep::onnx
