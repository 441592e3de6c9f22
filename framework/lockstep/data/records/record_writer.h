// Writes packed records (record_format.h). Each file gets its name when it is complete, and the set's index is written
// last, so a set that is there is whole, also after a crash. One thread at a time. Throws Error with the file, the
// operation and the system's reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/data/images/decoded_images.h"
#include "lockstep/data/records/record_format.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::data {

struct RecordWriterOptions {
  std::filesystem::path folder{};  // must exist; NAME.index must not
  std::string name = "train";      // letters, digits, '.', '_' and '-'
  RecordLayout layout{};
  std::uint64_t file_bytes = std::uint64_t{1} << 30;  // a file ends after the record with which it has this many bytes
};

class RecordWriter {
 public:
  // Throws Error for invalid options, and if the set exists.
  explicit RecordWriter(RecordWriterOptions options);
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  ~RecordWriter();

  // Appends a record: the fields of a sample in the layout's order. Throws Error if the number of bytes does not fit.
  void add(std::span<const std::byte> record);
  // Writes the records that are still in memory, and the index. Without this call there is no set.
  void finish();

  std::int64_t records() const { return records_; }

 private:
  struct Part;  // the file that is being written
  void begin_part();
  void end_part();

  RecordWriterOptions options_;
  io::Folder folder_;
  std::unique_ptr<Part> part_;
  std::vector<RecordFileEntry> files_;
  std::int64_t records_ = 0;
};

struct PackOptions {
  std::filesystem::path folder{};
  std::string name = "train";
  std::uint64_t file_bytes = std::uint64_t{1} << 30;
  // The samples in a random order of this seed, for readers that take them in sequence; none: in the data set's order.
  std::optional<std::uint64_t> shuffle_seed{};
};

// Write a data set: its fields as read() gives them, or image files as they are. Return the number of samples.
std::int64_t pack_dataset(const Dataset& dataset, const PackOptions& options);
std::int64_t pack_images(const ImageFiles& files, const PackOptions& options);

}  // namespace lockstep::data
