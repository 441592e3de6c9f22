// Arrays of samples as NumPy's files: .npy (NEP 1, version 1.0), and .npz, a zip archive (APPNOTE.TXT 6.3) of such
// files.
#include <zlib.h>

#include <string>
#include <string_view>

#include "lockstep/data/array_form.h"
#include "lockstep/data/npy_format.h"

namespace lockstep::data {
namespace {

std::string start_of(const Field& array, std::int64_t samples) {
  return npy_start(kArrayFileSite, array.name, array.dtype, array.shape.batched(samples).dims());
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }
std::span<const std::byte> values_of(const Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }

class NpyForm : public ArrayFile::Form {
 public:
  using Form::Form;

  void begin(const std::vector<Field>& arrays, std::int64_t samples, const ArrayNotes& /*notes*/) override {
    std::string names;
    for (const Field& array : arrays) names += (names.empty() ? "" : ", ") + array.name;
    check_array_count(path(), arrays.size(), names);
    file().write(bytes_of(start_of(arrays.front(), samples)));
  }
  void append(std::span<const NamedTensor> part, std::int64_t /*first*/) override {
    file().write(values_of(part.front().tensor));
  }
};

// A text of little-endian numbers, as the headers of a zip archive are.
class Numbers {
 public:
  Numbers& u16(std::uint64_t value) { return put(value, 2); }
  Numbers& u32(std::uint64_t value) { return put(value, 4); }
  Numbers& u64(std::uint64_t value) { return put(value, 8); }
  Numbers& text(std::string_view more) {
    text_ += more;
    return *this;
  }
  const std::string& str() const { return text_; }

 private:
  Numbers& put(std::uint64_t value, int bytes) {
    for (int b = 0; b < bytes; ++b) text_ += static_cast<char>(value >> (8 * b) & 0xFF);
    return *this;
  }
  std::string text_;
};

// Every entry has the sizes of zip64, as those of NumPy have. The checksum of an entry is known at the end.
class NpzForm : public ArrayFile::Form {
 public:
  using Form::Form;

  void begin(const std::vector<Field>& arrays, std::int64_t samples, const ArrayNotes& /*notes*/) override {
    for (const Field& array : arrays) {
      const std::string start = start_of(array, samples);
      Entry entry{.name = array.name + ".npy", .header = end_, .sample = array.bytes()};
      entry.size = start.size() + static_cast<std::uint64_t>(samples) * array.bytes();
      entry.crc = crc32_z(0, reinterpret_cast<const unsigned char*>(start.data()), start.size());
      const std::string header = local_header(entry);
      file().write_at(end_, bytes_of(header + start));
      entry.values = end_ + header.size() + start.size();
      end_ += header.size() + entry.size;
      entries_.push_back(std::move(entry));
    }
  }
  void append(std::span<const NamedTensor> part, std::int64_t first) override {
    for (std::size_t i = 0; i < part.size(); ++i) {
      Entry& entry = entries_[i];
      const std::span<const std::byte> values = values_of(part[i].tensor);
      if (values.empty()) continue;
      file().write_at(entry.values + static_cast<std::uint64_t>(first) * entry.sample, values);
      entry.crc = crc32_z(entry.crc, reinterpret_cast<const unsigned char*>(values.data()), values.size());
    }
  }
  void finish() override {
    Numbers directory;
    for (const Entry& entry : entries_) {
      file().write_at(entry.header, bytes_of(local_header(entry)));
      directory.u32(0x02014b50).u16(kVersion);
      common_header(directory, entry, 28);
      directory.u16(0).u16(0).u16(0).u32(0).u32(kInZip64).text(entry.name);
      directory.u16(1).u16(24).u64(entry.size).u64(entry.size).u64(entry.header);
    }
    const std::uint64_t size = directory.str().size(), count = entries_.size();
    directory.u32(0x06064b50).u64(44).u16(kVersion).u16(kVersion).u32(0).u32(0);
    directory.u64(count).u64(count).u64(size).u64(end_);
    directory.u32(0x07064b50).u32(0).u64(end_ + size).u32(1);
    directory.u32(0x06054b50).u16(0).u16(0).u16(0xFFFF).u16(0xFFFF).u32(kInZip64).u32(kInZip64).u16(0);
    file().write_at(end_, bytes_of(directory.str()));
  }

 private:
  static constexpr std::uint64_t kVersion = 45, kInZip64 = 0xFFFFFFFF;  // 45: zip64
  struct Entry {
    std::string name;
    std::uint64_t header = 0, sample = 0;  // offset of the local header; bytes of a sample
    std::uint64_t size = 0, values = 0;    // bytes of the .npy file; offset of its values
    std::uint64_t crc = 0;
  };

  // From the version to the length of the further fields: UTF-8 names, stored, 1 January 1980.
  static void common_header(Numbers& to, const Entry& entry, std::uint64_t further) {
    to.u16(kVersion).u16(0x800).u16(0).u16(0).u16(0x21).u32(entry.crc).u32(kInZip64).u32(kInZip64);
    to.u16(entry.name.size()).u16(further);
  }
  static std::string local_header(const Entry& entry) {
    Numbers header;
    header.u32(0x04034b50);
    common_header(header, entry, 20);
    return header.text(entry.name).u16(1).u16(16).u64(entry.size).u64(entry.size).str();
  }

  std::vector<Entry> entries_;
  std::uint64_t end_ = 0;  // of the last entry
};

}  // namespace

std::unique_ptr<ArrayFile::Form> make_npy_form(const std::filesystem::path& path) {
  return std::make_unique<NpyForm>(path);
}

std::unique_ptr<ArrayFile::Form> make_npz_form(const std::filesystem::path& path) {
  return std::make_unique<NpzForm>(path);
}

}  // namespace lockstep::data
