#include "tools/safetensors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "lockstep/core/bfloat16.h"
#include "lockstep/core/error.h"
#include "lockstep/io/read_file.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::tools {
namespace {

constexpr const char* kTensorsSite = "safetensors";
constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit
constexpr std::size_t kLengthBytes = 8;
static_assert(std::endian::native == std::endian::little, "the format is little-endian");

std::string type_name(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return "F32";
    case DType::F64:
      return "F64";
    case DType::I32:
      return "I32";
    case DType::I64:
      return "I64";
    case DType::U8:
      return "U8";
    default:
      fail(kTensorsSite, "a tensor is {}, expected f32, f64, i32, i64 or u8", name_of(dtype));
  }
}

// IEEE 754's binary16.
float from_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 0x1f;
  const int fraction = half & 0x3ff;
  const float sign = (half & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

// Elements of two bytes as f32.
template <class Convert>
Tensor widened(Shape shape, std::span<const std::byte> bytes, Convert convert) {
  Tensor tensor(std::move(shape), DType::F32);
  std::span<float> to = tensor.data<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes.data() + 2 * i, 2);
    to[i] = convert(half);
  }
  return tensor;
}

struct Kind {
  const char* name;
  std::size_t bytes;
  DType dtype;  // in memory
};
constexpr Kind kKinds[] = {{"F32", 4, DType::F32}, {"F64", 8, DType::F64}, {"I32", 4, DType::I32},
                           {"I64", 8, DType::I64}, {"U8", 1, DType::U8},   {"F16", 2, DType::F32},
                           {"BF16", 2, DType::F32}};

// One entry of the header; `data` is all that lies behind the header.
Tensor read_entry(const std::string& file, const std::string& name, const nlohmann::json& entry,
                  std::span<const std::byte> data) {
  const auto type = entry.at("dtype").get<std::string>();
  const auto dims = entry.at("shape").get<std::vector<std::int64_t>>();
  const auto ends = entry.at("data_offsets").get<std::vector<std::uint64_t>>();
  const auto* kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return type == k.name; });
  check(kind != std::end(kKinds), kTensorsSite, "{}: {} is {}, expected F32, F64, I32, I64, U8, F16 or BF16", file,
        name, type);
  double elements = 1;  // exact below 2^53, and more than a file can have above
  for (const std::int64_t size : dims) {
    check(size >= 0, kTensorsSite, "{}: {} has a dimension of {}, expected none below 0", file, name, size);
    elements *= static_cast<double>(size);
  }
  const bool fits = ends.size() == 2 && ends[0] <= ends[1] && ends[1] <= data.size() &&
                    elements * static_cast<double>(kind->bytes) == static_cast<double>(ends[1] - ends[0]);
  check(fits, kTensorsSite,
        "{}: the byte range of {} does not fit its shape or the file: the file is damaged or cut off", file, name);
  const std::span<const std::byte> bytes = data.subspan(ends[0], ends[1] - ends[0]);
  if (type == "F16") return widened(Shape(dims), bytes, from_half);
  if (type == "BF16")
    return widened(Shape(dims), bytes,
                   [](std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); });
  Tensor tensor(Shape(dims), kind->dtype);
  if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  return tensor;
}

}  // namespace

std::string write_safetensors(std::span<const io::NamedTensor> tensors) {
  nlohmann::ordered_json header = {{"__metadata__", {{"format", "pt"}}}};  // as the readers of PyTorch's users ask for
  std::size_t end = 0;
  for (const auto& [name, tensor] : tensors) {
    check(!header.contains(name), kTensorsSite, "two tensors are called {}, expected names that differ", name);
    header[name] = {{"dtype", type_name(tensor.dtype())},
                    {"shape", tensor.shape().dims()},
                    {"data_offsets", {end, end + tensor.bytes()}}};
    end += tensor.bytes();
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // elements begin at a multiple of 8
  const std::uint64_t length = text.size();
  std::string file(kLengthBytes, '\0');
  std::memcpy(file.data(), &length, kLengthBytes);
  file.reserve(kLengthBytes + text.size() + end);
  file += text;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.bytes() > 0) file.append(reinterpret_cast<const char*>(tensor.raw()), tensor.bytes());
  }
  return file;
}

std::vector<io::NamedTensor> read_safetensors(const std::filesystem::path& path) {
  io::FileReader reader(path, kTensorsSite);
  const std::vector<std::byte> bytes = reader.peek(0, reader.size());
  std::uint64_t length = 0;
  if (bytes.size() >= kLengthBytes) std::memcpy(&length, bytes.data(), kLengthBytes);
  check(bytes.size() == reader.size() && length > 0 && length <= kMostHeader && length <= bytes.size() - kLengthBytes,
        kTensorsSite, "{}: its first bytes are not the length of a header: expected a whole file of safetensors",
        path.string());
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const nlohmann::json header = train::parse_json(text);
  check(header.is_object(), kTensorsSite, "{}: its header is not a JSON object", path.string());
  const std::span<const std::byte> data = std::span(bytes).subspan(kLengthBytes + length);
  std::vector<io::NamedTensor> tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    try {
      tensors.push_back({name, read_entry(path.string(), name, entry, data)});
    } catch (const nlohmann::json::exception&) {
      fail(kTensorsSite, "{}: the header's entry {} is incomplete, expected dtype, shape and data_offsets",
           path.string(), name);
    }
  }
  return tensors;
}

}  // namespace lockstep::tools
