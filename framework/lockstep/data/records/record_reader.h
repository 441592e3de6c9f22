// Reads packed records (record_format.h) by position: one pread() for each record, whose checksum is compared. Headers
// and indices of all files are verified when the set is opened; 16 bytes a record stay in memory. Neighbouring records
// lie side by side in a file, so a sampler that asks for runs of them (SamplerOptions::shuffle_block) reads in
// sequence. Any thread may read. Throws Error with file, record and offset for damaged, truncated or missing files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/data/images/decoded_images.h"
#include "lockstep/data/records/record_format.h"
#include "lockstep/io/read_file.h"

namespace lockstep::data {

class RecordReader {
 public:
  explicit RecordReader(const std::filesystem::path& index);  // the path of NAME.index

  std::int64_t size() const { return size_; }
  const RecordLayout& layout() const { return layout_; }
  const std::string& path() const { return path_; }
  std::vector<std::byte> read(std::int64_t record) const;  // `record` is in [0, size())
  // The last bytes of a record, as they are: its checksum is not compared. Throws Error for more than it has.
  std::vector<std::byte> read_end(std::int64_t record, std::size_t bytes) const;
  // "FILE: record 3 at offset 4711", with the record's number in its file.
  std::string place(std::int64_t record) const;

 private:
  struct Entry {
    std::uint64_t end = 0, hash = 0;
  };
  struct File {
    io::FileReader reader;
    std::int64_t first = 0;  // number of the file's first record in the set
    std::vector<Entry> entries{};
  };
  struct Found {
    const File& file;
    std::size_t number;  // in the file
    std::uint64_t begin, end;
  };

  void open(const std::filesystem::path& folder, const RecordFileEntry& expected);
  void check_ends(const File& file, std::uint64_t index_offset) const;
  Found find(std::int64_t record) const;

  std::string path_;
  RecordLayout layout_;
  std::vector<File> files_;
  std::int64_t size_ = 0;
};

// The samples of a set without image files.
class RecordDataset : public Dataset {
 public:
  // Throws Error if a field is an image file, which RecordImages reads.
  explicit RecordDataset(RecordReader records);

  std::int64_t size() const override { return records_.size(); }
  const std::vector<Field>& fields() const override { return records_.layout().fields; }
  std::int64_t classes() const override { return records_.layout().classes; }
  std::string describe() const override;
  void read(std::int64_t index, std::span<std::byte* const> out) const override;

 private:
  RecordReader records_;
};

// The image files of a set with the fields "image", an image file, and "label", an I32.
class RecordImages : public ImageFiles {
 public:
  explicit RecordImages(RecordReader records);  // throws Error for other fields

  std::int64_t size() const override { return records_.size(); }
  const std::vector<std::string>& class_names() const override { return records_.layout().class_names; }
  std::string describe() const override;
  ImageFile read(std::int64_t index) const override;
  std::int32_t label(std::int64_t index) const override;  // reads the label alone; throws Error as read()
  std::string place(std::int64_t index) const override { return records_.place(index); }

 private:
  std::int32_t label_in(std::span<const std::byte> end, std::int64_t index) const;

  RecordReader records_;
};

// Opens a set: image files are decoded as `options` say, other samples are read as they are.
std::unique_ptr<Dataset> open_records(const std::filesystem::path& index, const DecodeOptions& options);

}  // namespace lockstep::data
