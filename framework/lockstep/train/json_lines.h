// A file of JSON objects, one per line, each with the step it belongs to: what a run appends to, and goes on with when
// it is resumed. For one process, from one thread. Throws Error that begins with `place` where the file cannot be read
// or written.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep::train {

class JsonLines {
 public:
  struct Settings {
    std::filesystem::path path;
    std::string place;                              // of errors and warnings
    std::optional<std::int64_t> resumed_step = {};  // of the run; none: it is new
    // Told each line that stays, in order; false: it is no record of this file and is left out.
    std::function<bool(const nlohmann::json&)> stays = [](const nlohmann::json&) { return true; };
  };

  // Of a new run: a file that is there already is moved aside, from NAME.jsonl to NAME.1.jsonl and so on. Of a resumed
  // one: lines of later steps, which will be trained again, are taken out, with what a kill may have left cut short.
  // The file is replaced whole or not at all.
  explicit JsonLines(const Settings& settings);

  void open();                                      // makes the file if there is none
  void append(const nlohmann::ordered_json& line);  // after open(); flushed

  const std::filesystem::path& path() const { return path_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void move_aside() const;
  void keep_until(std::int64_t step, const std::function<bool(const nlohmann::json&)>& stays) const;

  std::filesystem::path path_;
  std::string place_;
  std::unique_ptr<std::FILE, CloseFile> file_;
};

}  // namespace lockstep::train
