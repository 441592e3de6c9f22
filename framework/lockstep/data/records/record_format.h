// Packed records: the samples of a data set in a few large files, with a checksum for each sample. All numbers are
// little-endian. A set called NAME is
//
//   NAME.index           "LSRINDEX", version (u32), 0 (u32), length of the text (u64), text (JSON), XXH3-64 of all
//   bytes
//                        before it (u64). The text lists fields, classes and files, with the number of records, the
//                        bytes and the index hash of each file. It is written last: without it there is no set.
//   NAME-00000.records   "LSRECORD", version (u32), 0 (u32), number of records (u64), offset of the index (u64), then
//   ...                  the records one after the other, then the index: for each record the offset of its end (u64)
//                        and the XXH3-64 of its bytes (u64). The index hash is XXH3-64 of header and index.
//
// A record holds the fields of a sample in order, each as its bytes; at most one field is an image file, whose length
// is the rest of the record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep::data {

inline constexpr std::string_view kRecordSetMagic = "LSRINDEX", kRecordFileMagic = "LSRECORD";
inline constexpr std::uint32_t kRecordVersion = 1;
inline constexpr std::size_t kRecordHeaderBytes = 32, kRecordEntryBytes = 16, kRecordSetHeaderBytes = 24;

// The contents of the records of a set.
struct RecordLayout {
  std::string description{};               // one line for a log
  std::vector<Field> fields{};             // of an image file only the name counts
  int image_file = -1;                     // position of the field that is an image file; -1: none
  std::int64_t classes = 0;                // as Dataset::classes()
  std::vector<std::string> class_names{};  // empty, or one for each class

  std::size_t fixed_bytes() const;  // of all fields but the image file
};

// A file of a set, as the set's index lists it.
struct RecordFileEntry {
  std::string name{};  // in the folder of the set's index
  std::uint64_t records = 0, bytes = 0, index_hash = 0;
};

struct RecordSet {
  RecordLayout layout{};
  std::vector<RecordFileEntry> files{};
};

// Throws Error at `site` for fields that check_fields() refuses or that are too large, for classes whose names do not
// fit, and for an image file that is no field.
void check_layout(std::string_view site, const RecordLayout& layout);

// Returns the bytes of NAME.index.
std::vector<std::byte> encode_record_set(const RecordSet& set);
// Reads them; throws Error, with `path` and offset, for bytes that are damaged, of another version, or contradictory.
RecordSet decode_record_set(std::span<const std::byte> bytes, const std::string& path);

// Little-endian numbers.
void append_u32(std::vector<std::byte>& bytes, std::uint32_t value);
void append_u64(std::vector<std::byte>& bytes, std::uint64_t value);
std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t offset);
std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t offset);

}  // namespace lockstep::data
