// One writer at a time in a folder of output. The lock belongs to the open file, so the system takes it away with its
// owner, however that ends; what stays in the folder is a file that says who held it last, and locks nobody out.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

// Another job holds the lock.
class FolderInUse : public Error {
 public:
  using Error::Error;
};

// The holder of the lock of `directory`, as it described itself; empty: no process holds it, or that cannot be told.
std::string lock_holder(const std::filesystem::path& directory);

class DirectoryLock {
 public:
  // Locks DIRECTORY/.lock. An owner that is just ending, as after a restart, is waited for during `grace`; then a
  // FolderInUse names its host, process and since when. Also an Error where the file cannot be made, or is no regular
  // file.
  explicit DirectoryLock(const std::filesystem::path& directory,
                         std::chrono::milliseconds grace = std::chrono::seconds(5));
  explicit DirectoryLock(std::shared_ptr<const io::Folder> folder,
                         std::chrono::milliseconds grace = std::chrono::seconds(5));

  // Held open as long as it is locked.
  const std::shared_ptr<const io::Folder>& folder() const { return folder_; }
  // Why nobody is locked out (a file system without locks); empty: all is well.
  const std::string& warning() const { return warning_; }
  // Whether the file that is locked is still the one in the folder, where others look; also while that cannot be told.
  bool in_place() const;

 private:
  std::shared_ptr<const io::Folder> folder_;
  io::FileDescriptor file_;
  std::string warning_;
};

}  // namespace lockstep::checkpoint
