// Writes archives of arrays as numpy.savez() does: a zip archive, not compressed, with a member NAME.npy for each.
#include <minizip/zip.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <utility>

#include "data/datasets/npy.h"
#include "lockstep/core/error.h"
#include "lockstep/data/npy_format.h"

namespace lockstep::datasets {
namespace {

constexpr const char* kWriteSite = "npz";

// The file in memory, as minizip sees files.
struct Memory {
  std::string bytes{};
  std::size_t at = 0;

  static Memory& of(void* memory) { return *static_cast<Memory*>(memory); }
  static void* open(void* memory, const void* /*name*/, int /*mode*/) { return memory; }
  static uLong read(void* memory, void* /*stream*/, void* to, uLong size) {
    Memory& m = of(memory);
    const std::size_t count = std::min<std::size_t>(size, m.bytes.size() - std::min(m.at, m.bytes.size()));
    if (count > 0) std::memcpy(to, m.bytes.data() + m.at, count);
    m.at += count;
    return count;
  }
  static uLong write(void* memory, void* /*stream*/, const void* from, uLong size) {
    Memory& m = of(memory);
    if (m.bytes.size() < m.at + size) m.bytes.resize(m.at + size);
    if (size > 0) std::memcpy(m.bytes.data() + m.at, from, size);
    m.at += size;
    return size;
  }
  static ZPOS64_T tell(void* memory, void* /*stream*/) { return of(memory).at; }
  static long seek(void* memory, void* /*stream*/, ZPOS64_T offset, int origin) {
    Memory& m = of(memory);
    m.at = offset + (origin == SEEK_CUR ? m.at : origin == SEEK_END ? m.bytes.size() : 0);
    return 0;
  }
  static int close(void* /*memory*/, void* /*stream*/) { return 0; }
};

void check_zip(int code, const std::string& name) {
  check(code == ZIP_OK, kWriteSite, "{} cannot be put into the archive: minizip's error {}", name, code);
}

void write_bytes(zipFile zip, const std::string& name, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::size_t count = std::min(bytes.size(), std::size_t{1} << 30);
    check_zip(zipWriteInFileInZip(zip, bytes.data(), static_cast<unsigned>(count)), name);
    bytes = bytes.subspan(count);
  }
}

void write_member(zipFile zip, const io::NamedTensor& named) {
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 31;
  const std::string start = data::npy_start(kWriteSite, named.name, named.tensor.dtype(), named.tensor.shape().dims()),
                    member = named.name + ".npy";
  zip_fileinfo info{};
  info.tmz_date = {.tm_sec = 0, .tm_min = 0, .tm_hour = 0, .tm_mday = 1, .tm_mon = 0, .tm_year = 1980};
  check_zip(zipOpenNewFileInZip64(zip, member.c_str(), &info, nullptr, 0, nullptr, 0, nullptr, 0, 0,
                                  start.size() + named.tensor.bytes() >= kLarge ? 1 : 0),
            named.name);
  write_bytes(zip, named.name, std::as_bytes(std::span(start)));
  write_bytes(zip, named.name, {named.tensor.raw(), named.tensor.bytes()});
  check_zip(zipCloseFileInZip(zip), named.name);
}

}  // namespace

std::string write_npz(std::span<const io::NamedTensor> tensors) {
  Memory memory;
  zlib_filefunc64_def functions{.zopen64_file = &Memory::open,
                                .zread_file = &Memory::read,
                                .zwrite_file = &Memory::write,
                                .ztell64_file = &Memory::tell,
                                .zseek64_file = &Memory::seek,
                                .zclose_file = &Memory::close,
                                .zerror_file = &Memory::close,
                                .opaque = &memory};
  struct Close {
    void operator()(void* zip) const { zipClose(zip, nullptr); }
  };
  std::unique_ptr<void, Close> zip(zipOpen2_64("", APPEND_STATUS_CREATE, nullptr, &functions));
  check(zip != nullptr, kWriteSite, "the archive cannot be created");
  std::set<std::string> names;
  for (const io::NamedTensor& named : tensors) {
    check(names.insert(named.name).second, kWriteSite, "two tensors are called {}, expected names that differ",
          named.name);
    write_member(zip.get(), named);
  }
  check_zip(zipClose(zip.release(), nullptr), "the list of members");
  return std::move(memory.bytes);
}

}  // namespace lockstep::datasets
