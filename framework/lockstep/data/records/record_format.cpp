#include "lockstep/data/records/record_format.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::data {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kRecordSet = "records";
constexpr std::int64_t kMostFieldBytes = std::int64_t{1} << 40;
constexpr std::array kTypes{DType::F32, DType::F64, DType::I32, DType::I64, DType::U8, DType::BF16};

void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

Json fields_to_json(const RecordLayout& layout) {
  Json fields = Json::array();
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const Field& field = layout.fields[i];
    if (static_cast<int>(i) == layout.image_file) {
      fields.push_back({{"name", field.name}, {"encoding", "image file"}});
    } else {
      fields.push_back({{"name", field.name}, {"dtype", name_of(field.dtype)}, {"shape", field.shape.dims()}});
    }
  }
  return fields;
}

// Members of the index's text, whose types and ranges are checked.
class SetText {
 public:
  SetText(const std::string& path, std::string_view text)
      : path_(path), json_(Json::parse(text.begin(), text.end(), nullptr, false)) {
    check(json_.is_object(), kRecordSet, "{}: offset {}: the text is not a JSON object", path, kRecordSetHeaderBytes);
  }

  RecordSet read() const {
    RecordSet set;
    set.layout.description = text(json_, "description");
    set.layout.classes = static_cast<std::int64_t>(number(json_, "classes"));
    for (const Json& name : array(json_, "class_names")) {
      check(name.is_string(), kRecordSet, "{}: 'class_names' has an element that is no text", path_);
      set.layout.class_names.push_back(name.get<std::string>());
    }
    for (const Json& field : array(json_, "fields")) read_field(field, set.layout);
    for (const Json& file : array(json_, "files")) set.files.push_back(read_file(file));
    return set;
  }

 private:
  const Json& member(const Json& object, const char* name) const {
    check(object.is_object() && object.contains(name), kRecordSet, "{}: '{}' is missing in the text", path_, name);
    return object[name];
  }
  std::string text(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    check(value.is_string(), kRecordSet, "{}: '{}' is no text", path_, name);
    return value.get<std::string>();
  }
  std::uint64_t number(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    check(value.is_number_unsigned(), kRecordSet, "{}: '{}' is no number of at least 0", path_, name);
    return value.get<std::uint64_t>();
  }
  const Json& array(const Json& object, const char* name) const {
    const Json& value = member(object, name);
    check(value.is_array(), kRecordSet, "{}: '{}' is no list", path_, name);
    return value;
  }

  void read_field(const Json& object, RecordLayout& layout) const {
    Field field{.name = text(object, "name"), .shape = {}, .dtype = DType::U8};
    if (object.contains("encoding")) {
      const std::string encoding = text(object, "encoding");
      check(encoding == "image file", kRecordSet, "{}: field '{}' has the encoding '{}', expected 'image file'", path_,
            printable(field.name), printable(encoding));
      check(layout.image_file < 0, kRecordSet, "{}: two fields are image files, expected at most one", path_);
      layout.image_file = static_cast<int>(layout.fields.size());
    } else {
      const std::string type = text(object, "dtype");
      const auto found = std::ranges::find(kTypes, type, [](DType t) { return name_of(t); });
      check(found != kTypes.end(), kRecordSet, "{}: field '{}' has the dtype '{}', which is unknown", path_,
            printable(field.name), printable(type));
      field.dtype = *found;
      std::vector<std::int64_t> dims;
      for (const Json& size : array(object, "shape")) {
        check(size.is_number_unsigned() && size.get<std::uint64_t>() <= std::uint64_t{kMostFieldBytes}, kRecordSet,
              "{}: field '{}' has a dimension that is no number from 0 to {}", path_, printable(field.name),
              kMostFieldBytes);
        dims.push_back(size.get<std::int64_t>());
      }
      field.shape = Shape(std::move(dims));
    }
    layout.fields.push_back(std::move(field));
  }

  RecordFileEntry read_file(const Json& object) const {
    RecordFileEntry file{.name = text(object, "name"),
                         .records = number(object, "records"),
                         .bytes = number(object, "bytes"),
                         .index_hash = number(object, "index_hash")};
    const bool plain = !file.name.empty() && file.name != "." && file.name != ".." &&
                       file.name.find('/') == std::string::npos && file.name.find('\0') == std::string::npos;
    check(plain, kRecordSet, "{}: the file name '{}', expected one without folders", path_, printable(file.name));
    check(file.bytes >= kRecordHeaderBytes && file.records <= (file.bytes - kRecordHeaderBytes) / kRecordEntryBytes,
          kRecordSet, "{}: {} records in the {} bytes of {}, which are too few", path_, file.records, file.bytes,
          printable(file.name));
    return file;
  }

  const std::string& path_;
  Json json_;
};

}  // namespace

std::size_t RecordLayout::fixed_bytes() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (static_cast<int>(i) != image_file) bytes += fields[i].bytes();
  }
  return bytes;
}

void check_layout(std::string_view site, const RecordLayout& layout) {
  check_fields(site, layout.fields);
  check(layout.image_file < static_cast<int>(layout.fields.size()), site, "field {} is an image file, there are {}",
        layout.image_file, layout.fields.size());
  std::int64_t left = kMostFieldBytes;
  for (const Field& field : layout.fields) {
    const auto width = static_cast<std::int64_t>(size_of(field.dtype));
    check(field.shape.elements() <= left / width, site, "the fields of a sample take more than {} bytes",
          kMostFieldBytes);
    left -= field.shape.elements() * width;
  }
  check(layout.classes >= 0, site, "{} classes, expected at least 0", layout.classes);
  check(layout.class_names.empty() || std::ssize(layout.class_names) == layout.classes, site,
        "{} names for {} classes, expected one for each", layout.class_names.size(), layout.classes);
}

std::vector<std::byte> encode_record_set(const RecordSet& set) {
  Json files = Json::array();
  for (const RecordFileEntry& file : set.files) {
    files.push_back(
        {{"name", file.name}, {"records", file.records}, {"bytes", file.bytes}, {"index_hash", file.index_hash}});
  }
  const Json json{{"description", set.layout.description},
                  {"fields", fields_to_json(set.layout)},
                  {"classes", static_cast<std::uint64_t>(set.layout.classes)},
                  {"class_names", set.layout.class_names},
                  {"files", std::move(files)}};
  // Names of files and classes may be bytes that are no UTF-8; JSON holds the replacement character for these.
  const std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  std::vector<std::byte> bytes;
  append_text(bytes, kRecordSetMagic);
  append_u32(bytes, kRecordVersion);
  append_u32(bytes, 0);
  append_u64(bytes, text.size());
  append_text(bytes, text);
  append_u64(bytes, XXH3_64bits(bytes.data(), bytes.size()));
  return bytes;
}

RecordSet decode_record_set(std::span<const std::byte> bytes, const std::string& path) {
  check(bytes.size() >= kRecordSetHeaderBytes + 8, kRecordSet, "{}: truncated: {} bytes, expected at least {}", path,
        bytes.size(), kRecordSetHeaderBytes + 8);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  check(all.starts_with(kRecordSetMagic), kRecordSet, "{}: offset 0: not an index of records, expected the bytes {}",
        path, kRecordSetMagic);
  const std::uint32_t version = read_u32(bytes, 8);
  check(version == kRecordVersion, kRecordSet, "{}: offset 8: format version {}, expected {}", path, version,
        kRecordVersion);
  const std::uint64_t length = read_u64(bytes, 16), room = bytes.size() - kRecordSetHeaderBytes - 8;
  check(length == room, kRecordSet, "{}: offset 16: a text of {} bytes, the file has {}; is it truncated?", path,
        length, room);
  const std::uint64_t stored = read_u64(bytes, bytes.size() - 8), hash = XXH3_64bits(bytes.data(), bytes.size() - 8);
  check(stored == hash, kRecordSet, "{}: damaged: XXH3-64 is {:016x}, expected {:016x}", path, hash, stored);
  RecordSet set = SetText(path, all.substr(kRecordSetHeaderBytes, length)).read();
  check_layout(path, set.layout);
  return set;
}

void append_u32(std::vector<std::byte>& bytes, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(value >> shift));
}

void append_u64(std::vector<std::byte>& bytes, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<std::byte>(value >> shift));
}

std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[offset + i - 1]);
  return value;
}

std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i > 0; --i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + i - 1]);
  return value;
}

}  // namespace lockstep::data
