// A file of JSON objects, one per line, each with the step it belongs to: what a run appends to, and goes on with when
// it is resumed. For one process, from one thread. Throws Error that begins with `place` where the file cannot be read
// or made. Lines that a full disk does not take later are a warning, and go into the file, without a gap, when there is
// space again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lockstep/io/file_descriptor.h"
#include "lockstep/io/folder.h"

namespace lockstep::train {

class JsonLines {
 public:
  struct Settings {
    std::shared_ptr<const io::Folder> folder;
    std::string name;                               // of the file in it
    std::string place;                              // of errors and warnings
    std::optional<std::int64_t> resumed_step = {};  // of the run; none: it is new
    // Told each line that stays, in order; false: it is no record of this file and is left out.
    std::function<bool(const nlohmann::json&)> stays = [](const nlohmann::json&) { return true; };
  };

  // Of a new run: a file that is there already is moved aside, from NAME.jsonl to NAME.1.jsonl and so on. Of a resumed
  // one: lines of later steps, which will be trained again, are taken out, with what a kill may have left cut short.
  // The file is replaced whole or not at all.
  explicit JsonLines(const Settings& settings);
  JsonLines(JsonLines&&) = delete;
  ~JsonLines();  // tries once more to write what is left

  // Throws Error if there is something with this name that lines cannot be appended to. Changes nothing.
  static void check_file(const io::Folder& folder, const std::string& name, const std::string& place);

  void open();  // makes the file if there is none
  // After open(), where the run writes now: if the file that is open is not the one there, as somebody removed or
  // replaced it or its folder, it is opened anew there, and a warning says so. Throws Error; then it stays as it was.
  void follow(const std::shared_ptr<const io::Folder>& folder);
  // After open(). Up to 8 MiB wait in memory while the file cannot be written; then lines are left out, and counted.
  void append(const nlohmann::ordered_json& line);

  std::filesystem::path path() const { return folder_->path() / name_; }

 private:
  void move_aside() const;
  void keep_until(std::int64_t step, const std::function<bool(const nlohmann::json&)>& stays) const;
  std::string read() const;
  int write_out();

  std::shared_ptr<const io::Folder> folder_;
  std::string name_, place_;
  io::FileDescriptor file_;
  std::string unwritten_;
  bool failing_ = false, in_line_ = false;  // in_line_: what was written last ends inside a line
  std::int64_t lost_ = 0;                   // lines, since it cannot be written
};

}  // namespace lockstep::train
