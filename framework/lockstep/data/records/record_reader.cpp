#include "lockstep/data/records/record_reader.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kRecords = "records";
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{1} << 30;

static_assert(std::endian::native == std::endian::little, "records hold the bytes of numbers as this machine does");

}  // namespace

RecordReader::RecordReader(const std::filesystem::path& index) : path_(index.string()) {
  io::FileReader reader(index, std::string(kRecords));
  check(reader.size() <= kMostIndexBytes, kRecords, "{}: {} bytes, expected an index of at most {}", path_,
        reader.size(), kMostIndexBytes);
  RecordSet set = decode_record_set(reader.peek(0, reader.size()), path_);
  layout_ = std::move(set.layout);
  for (const RecordFileEntry& file : set.files) open(index.parent_path(), file);
}

void RecordReader::open(const std::filesystem::path& folder, const RecordFileEntry& expected) {
  File file{.reader = io::FileReader(folder / expected.name, std::string(kRecords)), .first = size_};
  const std::string& path = file.reader.path();
  check(file.reader.size() == expected.bytes, kRecords,
        "{}: {} bytes, {} says {}; the file is truncated or another one", path, file.reader.size(), path_,
        expected.bytes);
  std::vector<std::byte> bytes = file.reader.peek(0, kRecordHeaderBytes);
  check(bytes.size() == kRecordHeaderBytes && std::memcmp(bytes.data(), kRecordFileMagic.data(), 8) == 0, kRecords,
        "{}: offset 0: not a file of records, expected the bytes {}", path, kRecordFileMagic);
  const std::uint32_t version = read_u32(bytes, 8);
  check(version == kRecordVersion, kRecords, "{}: offset 8: format version {}, expected {}", path, version,
        kRecordVersion);
  const std::uint64_t records = read_u64(bytes, 16), at = read_u64(bytes, 24);
  check(records == expected.records && at == expected.bytes - records * kRecordEntryBytes, kRecords,
        "{}: offset 16: {} records and the index at {}, {} says {} records and {} bytes", path, records, at, path_,
        expected.records, expected.bytes);
  const std::vector<std::byte> index = file.reader.peek(at, records * kRecordEntryBytes);
  check(index.size() == records * kRecordEntryBytes, kRecords, "{}: offset {}: the index is truncated", path, at);
  bytes.insert(bytes.end(), index.begin(), index.end());
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  check(hash == expected.index_hash, kRecords, "{}: damaged index: XXH3-64 is {:016x}, {} says {:016x}", path, hash,
        path_, expected.index_hash);
  file.entries.reserve(records);
  for (std::size_t i = 0; i < records; ++i)
    file.entries.push_back({read_u64(index, i * kRecordEntryBytes), read_u64(index, i * kRecordEntryBytes + 8)});
  check_ends(file, at);
  size_ += static_cast<std::int64_t>(records);
  files_.push_back(std::move(file));
}

void RecordReader::check_ends(const File& file, std::uint64_t index_offset) const {
  const std::size_t fixed = layout_.fixed_bytes();
  std::uint64_t begin = kRecordHeaderBytes;
  for (std::size_t i = 0; i < file.entries.size(); ++i) {
    const std::uint64_t end = file.entries[i].end;
    check(end >= begin && end <= index_offset, kRecords, "{}: record {} from offset {} to {}, expected an end up to {}",
          file.reader.path(), i, begin, end, index_offset);
    const std::uint64_t bytes = end - begin;
    check(layout_.image_file < 0 ? bytes == fixed : bytes >= fixed, kRecords,
          "{}: record {} at offset {} has {} bytes, expected {}{}", file.reader.path(), i, begin, bytes,
          layout_.image_file < 0 ? "" : "at least ", fixed);
    begin = end;
  }
  check(begin == index_offset, kRecords, "{}: the last record ends at offset {}, expected {}", file.reader.path(),
        begin, index_offset);
}

RecordReader::Found RecordReader::find(std::int64_t record) const {
  check(record >= 0 && record < size_, kRecords, "{}: record {}, expected 0 to {}", path_, record, size_ - 1);
  const auto after = std::ranges::upper_bound(files_, record, {}, &File::first);
  const File& file = *std::prev(after);
  const auto number = static_cast<std::size_t>(record - file.first);
  return {.file = file,
          .number = number,
          .begin = number == 0 ? kRecordHeaderBytes : file.entries[number - 1].end,
          .end = file.entries[number].end};
}

std::vector<std::byte> RecordReader::read(std::int64_t record) const {
  const Found found = find(record);
  std::vector<std::byte> bytes = found.file.reader.peek(found.begin, found.end - found.begin);
  check(bytes.size() == found.end - found.begin, kRecords, "{}: truncated: {} bytes of {}", place(record), bytes.size(),
        found.end - found.begin);
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size()), expected = found.file.entries[found.number].hash;
  check(hash == expected, kRecords, "{}: damaged: XXH3-64 of its {} bytes is {:016x}, expected {:016x}", place(record),
        bytes.size(), hash, expected);
  return bytes;
}

std::vector<std::byte> RecordReader::read_end(std::int64_t record, std::size_t bytes) const {
  const Found found = find(record);
  check(bytes <= found.end - found.begin, kRecords, "{}: {} bytes, expected at least {}", place(record),
        found.end - found.begin, bytes);
  std::vector<std::byte> end = found.file.reader.peek(found.end - bytes, bytes);
  check(end.size() == bytes, kRecords, "{}: truncated: {} bytes of the last {}", place(record), end.size(), bytes);
  return end;
}

std::string RecordReader::place(std::int64_t record) const {
  const Found found = find(record);
  return formatted("{}: record {} at offset {}", found.file.reader.path(), found.number, found.begin);
}

RecordDataset::RecordDataset(RecordReader records) : records_(std::move(records)) {
  check(records_.layout().image_file < 0, kRecords, "{}: the samples have image files, which RecordImages reads",
        records_.path());
}

std::string RecordDataset::describe() const {
  return formatted("records {}: {} samples of {}", records_.path(), size(), records_.layout().description);
}

void RecordDataset::read(std::int64_t index, std::span<std::byte* const> out) const {
  check_index(index);
  const std::vector<std::byte> bytes = records_.read(index);
  std::size_t at = 0;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    const std::size_t count = fields()[i].bytes();
    if (count > 0) std::memcpy(out[i], bytes.data() + at, count);
    at += count;
  }
}

RecordImages::RecordImages(RecordReader records) : records_(std::move(records)) {
  const RecordLayout& layout = records_.layout();
  const bool known = layout.fields.size() == 2 && layout.image_file == 0 && layout.fields[0].name == "image" &&
                     layout.fields[1] == Field{"label", Shape{}, DType::I32};
  check(known, kRecords, "{}: expected the fields 'image', an image file, and 'label', i32", records_.path());
  check(std::ssize(layout.class_names) == layout.classes, kRecords, "{}: no names of the {} classes", records_.path(),
        layout.classes);
}

std::string RecordImages::describe() const {
  return formatted("records {}: {} samples of {}", records_.path(), size(), records_.layout().description);
}

ImageFile RecordImages::read(std::int64_t index) const {
  ImageFile file{.bytes = records_.read(index)};
  file.label = label_in(file.bytes, index);
  file.bytes.resize(file.bytes.size() - sizeof file.label);
  return file;
}

std::int32_t RecordImages::label(std::int64_t index) const {
  return label_in(records_.read_end(index, sizeof(std::int32_t)), index);
}

// The label stands at the end of a record.
std::int32_t RecordImages::label_in(std::span<const std::byte> end, std::int64_t index) const {
  std::int32_t label = 0;
  std::memcpy(&label, end.data() + end.size() - sizeof label, sizeof label);
  check(label >= 0 && label < records_.layout().classes, kRecords, "{}: label {}, expected 0 to {}", place(index),
        label, records_.layout().classes - 1);
  return label;
}

std::unique_ptr<Dataset> open_records(const std::filesystem::path& index, const DecodeOptions& options) {
  RecordReader records(index);
  if (records.layout().image_file < 0) return std::make_unique<RecordDataset>(std::move(records));
  return std::make_unique<DecodedImages>(std::make_unique<RecordImages>(std::move(records)), options);
}

}  // namespace lockstep::data
