// A file's bytes in order, inflated where its name ends in .gz (zlib). What a header claims is never believed: plain
// files are measured first, inflated bytes are kept in memory that grows with what really came out. Errors name file,
// offset (in the inflated bytes) and what was expected. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::data {

class FileSource {
 public:
  explicit FileSource(const std::filesystem::path& path);
  ~FileSource();
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  // Exactly `count` bytes, called `what` in errors ("pixels of 10000 images").
  std::vector<std::uint8_t> read(std::int64_t count, std::string_view what);
  std::uint32_t read_be32(std::string_view what);  // big-endian, as IDX headers are
  // Throws if there is more in the file.
  void expect_end(std::string_view what);

  const std::string& name() const { return name_; }
  std::int64_t offset() const { return offset_; }

 private:
  struct Inflater;
  std::size_t fill(std::span<std::uint8_t> out);  // fewer bytes than asked for only at the end
  std::size_t fill_plain(std::span<std::uint8_t> out);
  std::size_t fill_inflated(std::span<std::uint8_t> out);

  std::string name_;
  std::ifstream file_;
  std::int64_t file_size_ = 0, offset_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null for a plain file
};

}  // namespace lockstep::data
