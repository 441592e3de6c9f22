// A file of JSON objects, one per line, each with its step, and possibly with a word before it. A run appends lines,
// and a resumed run continues the file. For one process, in one thread. Throws Error with `site` if the file cannot be
// read or created. If the disk is full later, lines wait in memory with a warning, and are written, without a gap, when
// there is space again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lockstep/io/folder.h"
#include "lockstep/train/report/json_text.h"
#include "lockstep/train/report/patient_file.h"

namespace lockstep::train {

class JsonLines {
 public:
  struct Settings {
    std::shared_ptr<const io::Folder> folder;
    std::string name;                               // name of the file in `folder`
    std::string site;                               // site of errors and warnings
    std::string prefix = {};                        // before the object of each line
    std::optional<std::int64_t> resumed_step = {};  // step from which the run resumes; none: a new run
    // Called for each line that stays, in order; returns false to omit a line that is no record of this file.
    std::function<bool(const nlohmann::json&)> stays = [](const nlohmann::json&) { return true; };
    // Reads a line without its prefix as an object; a file that is no JSON has a reader of its own.
    std::function<nlohmann::json(std::string_view)> parse = [](std::string_view text) { return parse_json(text); };
    // Returns the step of a line; empty: the object is no record of this file.
    std::function<std::optional<std::int64_t>(const nlohmann::json&)> step = step_member;
  };

  // Returns the member "step" of an object; empty: it has none.
  static std::optional<std::int64_t> step_member(const nlohmann::json& object);

  // Prepares the file. In a new run, moves an existing file aside, from NAME.jsonl to NAME.1.jsonl and so on. In a
  // resumed run, removes the lines of later steps, which are trained again, and an incomplete last line that a kill may
  // have left. The file is replaced atomically.
  explicit JsonLines(const Settings& settings);
  JsonLines(JsonLines&&) = delete;

  // Throws Error if a file of this name exists and cannot be appended to. Changes nothing.
  static void check_file(const io::Folder& folder, const std::string& name, const std::string& site);

  void open();  // opens the file for appending; creates it if there is none
  // Continues in `folder`, to which the run writes now; after open(). If the open file is no longer the one there,
  // because a user removed or replaced the file or its folder, opens it anew with a warning, and returns true. Throws
  // Error and changes nothing if that fails.
  bool follow(const std::shared_ptr<const io::Folder>& folder);
  // Appends a line; after open(). Lines wait while the file cannot be written (see PatientFile).
  void append(const nlohmann::ordered_json& line) { append_text(line.dump()); }
  void append_text(const std::string& object) {  // the same, of an object's text without newlines
    file_.append(prefix_ + object + "\n");
  }

  // Has a line written before those that wait: the first of a file that follow() has opened.
  void prepend_text(const std::string& object) { file_.prepend(prefix_ + object + "\n"); }

  std::filesystem::path path() const { return folder_->path() / name_; }

 private:
  void move_aside() const;
  void keep_until(const Settings& settings) const;
  std::string read() const;

  std::shared_ptr<const io::Folder> folder_;
  std::string name_, site_, prefix_;
  PatientFile file_;
};

}  // namespace lockstep::train
