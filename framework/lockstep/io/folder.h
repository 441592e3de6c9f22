// A folder that is held open. What is opened, made, renamed or removed through it lies in this folder, whatever becomes
// of the path by which it was found: a folder that is moved is followed, one that takes its place is not touched. Any
// thread. Throws Error with the path, the operation and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::io {

// What a file of the job's own is opened for. All but Read make it if there is none; Replace empties it.
enum class FileUse : std::uint8_t { Read, ReadWrite, Append, Replace };

// Opens a file of the job's own. Another user, or a mistake, may have put something else under its name: a symbolic
// link is not followed, a pipe not waited for, and whatever is no regular file is an Error that begins with `place`.
// `expected` ends the message where the file cannot be written.
FileDescriptor open_own_file(const std::filesystem::path& path, FileUse use, std::string_view place,
                             std::string_view expected = "a writable --output");

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path);  // a link to a folder is followed
  // Empty where there is none.
  static std::optional<Folder> find(const std::filesystem::path& path);

  // By which it was found; for messages.
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_.get(); }
  // Whether `path` leads to this folder; also while that cannot be told.
  bool is_at(const std::filesystem::path& path) const;
  // The same folder under the path that it has now, as far as the system knows it.
  Folder renamed() const;

  Folder make(const std::string& name) const;                        // a folder in it, made if there is none
  std::optional<Folder> find_inside(const std::string& name) const;  // empty where there is none
  bool make_new(const std::string& name) const;                      // false: there is something with this name
  FileDescriptor open_file(const std::string& name, FileUse use, std::string_view place) const;
  bool has(const std::string& name) const;  // of any kind
  // Whether the file that is open as `file` is the one with this name; also while that cannot be told.
  bool holds(const std::string& name, int file) const;
  std::vector<std::string> names() const;      // without "." and ".."
  void remove(const std::string& name) const;  // a file, if there is one
  void move(const std::string& name, const Folder& to, const std::string& new_name) const;
  void flush() const;  // so that its names are on the disk

 private:
  Folder(std::filesystem::path path, FileDescriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  FileDescriptor descriptor_;
};

}  // namespace lockstep::io
