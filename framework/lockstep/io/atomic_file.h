// Replaces files atomically: at every instant, also after a crash, a name leads to the complete old contents or to the
// complete new contents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"

namespace lockstep::io {

struct AtomicFileOptions {
  std::uint64_t bytes = 0;  // number of bytes to be written; fault point checkpoint.write is reached after half of them
  std::int64_t step = 0;    // the step that fault points compare with
  std::string site = "checkpoint";  // the site of errors
};

// A new file with a temporary name; commit() gives it the final name. Without commit(), the destructor removes it and
// the file with the final name stays. One thread at a time. Throws Error with file, operation and the system's reason.
// Fault points (core/fault_point.h): checkpoint.write in the middle of the file, and checkpoint.rename.
class AtomicFile {
 public:
  // Creates the temporary file in `folder`, which must outlive this object. The file stays in that folder also if the
  // folder is moved. Throws if `name` is there and is no regular file: a link, a folder, a device, a pipe.
  AtomicFile(const Folder& folder, std::string name, const AtomicFileOptions& options = {});
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);      // appends to the file
  void overwrite(std::span<const std::byte> bytes);  // replaces the first bytes of the file, which exist already
  // Writes bytes at this offset, which may lie behind the end of the file, and does not move the end for write().
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Flushes the file to the disk, renames it to the final name and flushes the folder.
  void commit();

 private:
  void refuse_other_than_file() const;
  [[noreturn]] void fail_system(int code, std::string_view operation) const;
  void append(std::span<const std::byte> bytes);

  const Folder& folder_;
  std::string name_, temporary_;
  AtomicFileOptions options_;
  FileDescriptor file_;  // locked, so that remove_abandoned() sees a living writer
  std::uint64_t written_ = 0;
  bool renamed_ = false;
};

// Opens the folder of the file `path`, which need not exist. Throws Error at `site` that names the file.
Folder folder_of(const std::filesystem::path& path, std::string_view site);

// Writes bytes of memory, or a text, to a file atomically, as AtomicFile does; `site` is that of errors.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes, std::string_view site);
void replace_file(const std::filesystem::path& path, std::string_view text, std::string_view site);
void replace_file(const Folder& folder, const std::string& name, std::span<const std::byte> bytes,
                  std::string_view site);
void replace_file(const Folder& folder, const std::string& name, std::string_view text, std::string_view site);

// Removes the temporary files of killed writers in `directory`. A file stays if its writer may be alive: if it is
// locked, or was made on another host within the last hour.
void remove_abandoned(const Folder& directory);

}  // namespace lockstep::io
