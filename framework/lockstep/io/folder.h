// A folder that is held open. Its functions open, create, rename and remove files in this folder, also after the folder
// was moved; another folder at the old path is not touched. Any thread. Throws Error with the path, the operation and
// the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/file_descriptor.h"

namespace lockstep::io {

// The use of a job's own file. All uses but Read create a missing file; Replace empties an existing one.
enum class FileUse : std::uint8_t { Read, ReadWrite, Append, Replace };

// Opens a file that belongs to the job. Another user, or a mistake, may have put something else there: the function
// follows no symbolic link, does not wait for a pipe, and throws Error with `site` for anything but a regular file.
// `expected` ends the message if the file cannot be written.
FileDescriptor open_own_file(const std::filesystem::path& path, FileUse use, std::string_view site,
                             std::string_view expected = "a writable --output");

class Folder {
 public:
  explicit Folder(const std::filesystem::path& path);  // follows symbolic links
  // Opens the folder; returns empty if there is none.
  static std::optional<Folder> find(const std::filesystem::path& path);

  // Returns the path with which the folder was opened, for messages.
  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_.get(); }
  // Returns whether `path` leads to this folder; true if the system cannot tell.
  bool is_at(const std::filesystem::path& path) const;
  // Returns the same folder with its present path, if the system knows that path.
  Folder renamed() const;

  Folder make(const std::string& name) const;                        // opens a folder inside; creates it if need be
  std::optional<Folder> find_inside(const std::string& name) const;  // opens a folder inside; empty: there is none
  bool make_new(const std::string& name) const;                      // creates a folder; false: the name exists already
  FileDescriptor open_file(const std::string& name, FileUse use, std::string_view site) const;  // see open_own_file()
  bool has(const std::string& name) const;  // returns whether the name exists, as a file of any kind
  // Returns whether the open file `file` is the one with this name; true if the system cannot tell.
  bool holds(const std::string& name, int file) const;
  std::vector<std::string> names() const;      // all names in the folder, without "." and ".."
  void remove(const std::string& name) const;  // removes a file; no error if there is none
  void move(const std::string& name, const Folder& to, const std::string& new_name) const;
  void flush() const;  // writes the folder's names to the disk

 private:
  Folder(std::filesystem::path path, FileDescriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  FileDescriptor descriptor_;
};

}  // namespace lockstep::io
