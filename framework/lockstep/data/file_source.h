// Reads a file's bytes in order, and decompresses a file whose name ends in .gz (zlib). A header may claim more bytes
// than there are: the size of plain files is checked first, and memory for other bytes grows only with the bytes that
// were read. Throws Error with file, offset (in the decompressed bytes) and expectation. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

class FileSource {
 public:
  enum class Form : std::uint8_t { ByName, Plain, Gzip };
  // Writes the next bytes to `out` and returns their number, which may be smaller than out.size(); 0: the end.
  using Fill = std::function<std::size_t(std::span<std::uint8_t> out)>;

  explicit FileSource(const std::filesystem::path& path, Form form = Form::ByName);
  FileSource(std::string name, Fill fill);  // bytes of another origin, such as a member of an archive
  ~FileSource();
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  // Reads exactly `count` bytes; `what` describes them in errors ("pixels of 10000 images"). Throws Error if the file
  // has fewer bytes left.
  std::vector<std::uint8_t> read(std::int64_t count, std::string_view what);
  std::uint32_t read_be32(std::string_view what);  // reads a big-endian number, as in IDX headers
  // Fills `out` and returns the number of bytes, which is smaller than out.size() only at the end of the file.
  std::size_t read_some(std::span<std::uint8_t> out);
  // Throws Error if the file has further bytes; `what` describes the bytes before the end.
  void expect_end(std::string_view what);

  const std::string& name() const { return name_; }
  std::int64_t offset() const { return offset_; }
  std::int64_t file_size() const { return file_size_; }  // bytes on the disk; 0 for bytes of another origin

 private:
  struct Inflater;
  bool measured() const { return !inflater_ && !fill_; }
  std::size_t fill_from_elsewhere(std::span<std::uint8_t> out);
  std::size_t fill_plain(std::span<std::uint8_t> out);
  std::size_t fill_inflated(std::span<std::uint8_t> out);

  std::string name_;
  std::ifstream file_;
  std::int64_t file_size_ = 0, offset_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null for a plain file
  Fill fill_;                           // empty if the bytes are a file's
};

// Returns the whole file, inflated as its name says. Throws Error as FileSource does.
std::string read_text(const std::filesystem::path& path);

}  // namespace lockstep::data
