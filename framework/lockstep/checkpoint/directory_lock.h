// Ensures that one process at a time writes to an output folder. The lock belongs to an open file, so the system
// releases it when its owner ends, in any way. The file stays in the folder and names its last owner; it locks out no
// other process by itself.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"

namespace lockstep::checkpoint {

// Thrown when another job holds the lock.
class FolderInUse : public Error {
 public:
  using Error::Error;
};

// Returns the description of the process that holds the lock of `directory`; empty: no process holds it, or that is not
// known.
std::string lock_holder(const std::filesystem::path& directory);

class DirectoryLock {
 public:
  // Locks DIRECTORY/.lock. Waits up to `grace` for another owner, which may just be ending after a restart; then throws
  // FolderInUse with the owner's host, process and start time. Throws Error if the file cannot be created or is not a
  // regular file.
  explicit DirectoryLock(const std::filesystem::path& directory,
                         std::chrono::milliseconds grace = std::chrono::seconds(5));
  explicit DirectoryLock(std::shared_ptr<const io::Folder> folder,
                         std::chrono::milliseconds grace = std::chrono::seconds(5));

  // Returns the locked folder, which stays open as long as it is locked.
  const std::shared_ptr<const io::Folder>& folder() const { return folder_; }
  // Returns the reason why the lock has no effect (a file system without locks); empty: the lock works.
  const std::string& warning() const { return warning_; }
  // Returns whether the locked file is still the one that other processes find in the folder; true if that is not
  // known.
  bool in_place() const;

 private:
  std::shared_ptr<const io::Folder> folder_;
  io::FileDescriptor file_;
  std::string warning_;
};

}  // namespace lockstep::checkpoint
