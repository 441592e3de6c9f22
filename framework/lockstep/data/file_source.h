// A file's bytes in order, inflated where its name ends in .gz (zlib). A header's claims are never believed: plain
// files are measured first, other bytes are kept in memory that grows with the bytes that really came out. Errors name
// file, offset (in the inflated bytes) and what was expected. One thread.
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
  // Fills `out` with the next bytes, fewer of them if need be; 0: there are no more.
  using Fill = std::function<std::size_t(std::span<std::uint8_t> out)>;

  explicit FileSource(const std::filesystem::path& path, Form form = Form::ByName);
  FileSource(std::string name, Fill fill);  // bytes that come from elsewhere, such as a member of an archive
  ~FileSource();
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  // Exactly `count` bytes, called `what` in errors ("pixels of 10000 images").
  std::vector<std::uint8_t> read(std::int64_t count, std::string_view what);
  std::uint32_t read_be32(std::string_view what);  // big-endian, as IDX headers are
  // Fills `out`; returns fewer bytes than asked for at the end of the file alone.
  std::size_t read_some(std::span<std::uint8_t> out);
  // Throws if the file has further bytes.
  void expect_end(std::string_view what);

  const std::string& name() const { return name_; }
  std::int64_t offset() const { return offset_; }
  std::int64_t file_size() const { return file_size_; }  // as it lies on the disk; 0 for bytes from elsewhere

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
  Fill fill_;                           // empty for a file
};

}  // namespace lockstep::data
