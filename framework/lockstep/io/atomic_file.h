// Replacing a file so that, whatever happens and whenever, its name leads to the old contents or to the new ones,
// whole.
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
  std::uint64_t bytes = 0;  // that will be written; the fault point checkpoint.write lies behind their first half
  std::int64_t step = 0;    // of fault points
};

// A new file under a temporary name, which commit() gives its real one. Without commit() it is removed, and what had
// the real name stays. Not for concurrent use. An Error names file, operation and the system's reason. Fault points
// (core/fault_point.h): checkpoint.write in the middle of the file and checkpoint.rename.
class AtomicFile {
 public:
  // In a folder that is held open and outlives this: if it is moved meanwhile, the file is in the folder where it is
  // then.
  AtomicFile(const Folder& folder, std::string name, const AtomicFileOptions& options = {});
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);      // behind what was written before
  void overwrite(std::span<const std::byte> bytes);  // at the begin of the file
  // Flushes the file to the disk, renames it and flushes the folder.
  void commit();

 private:
  [[noreturn]] void fail_system(int code, std::string_view operation) const;
  void append(std::span<const std::byte> bytes);

  const Folder& folder_;
  std::string name_, temporary_;
  AtomicFileOptions options_;
  FileDescriptor file_;  // its lock says that the writer lives
  std::uint64_t written_ = 0;
  bool renamed_ = false;
};

// The folder in which the file `path` lies, or is to lie. Throws Error that names the file.
Folder folder_of(const std::filesystem::path& path);

// Makes such a file of bytes in memory.
void replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
void replace_file(const Folder& folder, const std::string& name, std::span<const std::byte> bytes);

// Removes temporaries in `directory` that writers left when they were killed. One whose writer may be
// alive stays: its lock is held, or it was made on another host within the last hour.
void remove_abandoned(const Folder& directory);

}  // namespace lockstep::io
