#include "lockstep/data/file_source.h"

#include <fmt/format.h>

#include <zlib.h>

#include <algorithm>
#include <array>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {
constexpr std::size_t kPiece = 1 << 18;
}

struct FileSource::Inflater {
  Inflater() {
    constexpr int kGzipOnly = 16;  // added to the window bits: zlib expects a gzip header and verifies its checksum
    check(inflateInit2(&stream, MAX_WBITS + kGzipOnly) == Z_OK, "zlib", "inflateInit2 failed: out of memory");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  z_stream stream{};
  std::array<std::uint8_t, kPiece> input{};
  bool member_open = true;  // inside a gzip member, where the file must not end
};

FileSource::FileSource(const std::filesystem::path& path, Form form) : name_(path.string()) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  check(std::filesystem::exists(status), name_, "no such file");
  check(std::filesystem::is_regular_file(status), name_, "not a regular file");
  file_size_ = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  check(!error, name_, "its size cannot be read: {}", error.message());
  file_.open(path, std::ios::binary);
  check(file_.is_open(), name_, "cannot be opened for reading");
  if (form == Form::Gzip || (form == Form::ByName && path.extension() == ".gz"))
    inflater_ = std::make_unique<Inflater>();
}

FileSource::FileSource(std::string name, Fill fill) : name_(std::move(name)), fill_(std::move(fill)) {}

FileSource::~FileSource() = default;

std::vector<std::uint8_t> FileSource::read(std::int64_t count, std::string_view what) {
  check(count >= 0, name_, "offset {}: {} bytes of {}, expected a count that is not negative", offset_, count, what);
  if (measured()) {
    check(file_size_ - offset_ >= count, name_, "truncated: offset {}: expected {} bytes of {}, the file has {} left",
          offset_, count, what, file_size_ - offset_);
  }
  std::vector<std::uint8_t> bytes;
  const auto wanted = static_cast<std::size_t>(count);
  if (measured()) bytes.reserve(wanted);
  while (bytes.size() < wanted) {
    const std::size_t had = bytes.size(), piece = std::min(wanted - had, std::max(kPiece, had));
    bytes.resize(had + piece);
    const std::size_t got = read_some({bytes.data() + had, piece});
    check(got == piece, name_, "truncated: offset {}: expected {} bytes of {}, got {}", offset_, count, what,
          had + got);
  }
  return bytes;
}

std::uint32_t FileSource::read_be32(std::string_view what) {
  const auto b = read(4, what);
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | std::uint32_t{b[3]};
}

void FileSource::expect_end(std::string_view what) {
  std::uint8_t extra = 0;
  const std::int64_t end = offset_;
  check(read_some({&extra, 1}) == 0, name_, "too long: expected the end of the file after {}, at offset {}{}", what,
        end, !measured() ? std::string() : fmt::format(", the file has {} bytes", file_size_));
}

std::size_t FileSource::read_some(std::span<std::uint8_t> out) {
  const std::size_t got = fill_ ? fill_from_elsewhere(out) : inflater_ ? fill_inflated(out) : fill_plain(out);
  offset_ += static_cast<std::int64_t>(got);
  return got;
}

std::size_t FileSource::fill_from_elsewhere(std::span<std::uint8_t> out) {
  std::size_t got = 0;
  while (got < out.size()) {
    const std::size_t more = fill_(out.subspan(got));
    if (more == 0) break;
    got += more;
  }
  return got;
}

std::size_t FileSource::fill_plain(std::span<std::uint8_t> out) {
  file_.read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
  check(!file_.bad(), name_, "offset {}: read error", offset_);
  return static_cast<std::size_t>(file_.gcount());
}

std::size_t FileSource::fill_inflated(std::span<std::uint8_t> out) {
  z_stream& z = inflater_->stream;
  std::size_t got = 0;
  while (got < out.size()) {
    if (z.avail_in == 0) {
      const std::size_t read = fill_plain(inflater_->input);
      z.next_in = inflater_->input.data();
      z.avail_in = static_cast<uInt>(read);
      if (read == 0) {
        const auto where = offset_ + static_cast<std::int64_t>(got);
        check(!inflater_->member_open, name_, "truncated: the gzip stream breaks off at inflated offset {}", where);
        return got;
      }
    }
    if (!inflater_->member_open) {  // bytes after a member: another member, or invalid data that inflate() reports
      inflateReset(&z);
      inflater_->member_open = true;
    }
    const auto room = static_cast<uInt>(std::min<std::size_t>(out.size() - got, kPiece));
    z.next_out = out.data() + got;
    z.avail_out = room;
    const int code = inflate(&z, Z_NO_FLUSH);
    got += room - z.avail_out;
    check(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR, name_,
          "not valid gzip data: inflated offset {}: {}", offset_ + static_cast<std::int64_t>(got),
          z.msg ? z.msg : zError(code));
    if (code == Z_STREAM_END) inflater_->member_open = false;
  }
  return got;
}

std::string read_text(const std::filesystem::path& path) {
  FileSource file(path);
  std::string text;
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  while (const std::size_t got = file.read_some(piece)) text.append(reinterpret_cast<const char*>(piece.data()), got);
  return text;
}

}  // namespace lockstep::data
