#include "lockstep/train/json_lines.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>

#include "lockstep/checkpoint/atomic_file.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/train/json_text.h"

namespace lockstep::train {
namespace fs = std::filesystem;

JsonLines::JsonLines(const Settings& settings) : path_(settings.path), place_(settings.place) {
  settings.resumed_step ? keep_until(*settings.resumed_step, settings.stays) : move_aside();
}

void JsonLines::move_aside() const {
  std::error_code error;
  if (!fs::exists(path_, error) || fs::file_size(path_, error) == 0) return;
  fs::path aside;
  for (int n = 1; aside.empty() || fs::exists(aside, error); ++n) {
    aside = path_.parent_path() / fmt::format("{}.{}{}", path_.stem().string(), n, path_.extension().string());
  }
  fs::rename(path_, aside, error);
  check(!error, place_, "cannot move {} to {}: {}", path_.string(), aside.string(), error.message());
}

void JsonLines::keep_until(std::int64_t step, const std::function<bool(const nlohmann::json&)>& stays) const {
  const std::string path = path_.string();
  std::error_code error;
  if (!fs::exists(path_, error)) return;
  std::ifstream in(path_, std::ios::binary);
  check(in.is_open(), place_, "cannot read {}: {}", path, std::strerror(errno));
  std::string kept, line;
  bool changed = false;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const bool whole = !in.eof();  // ends in a newline
    const auto json = parse_json(line);
    const bool record = whole && json.is_object() && json.contains("step") && json["step"].is_number_integer();
    const bool later = record && json["step"] > step;
    if (record && !later && stays(json)) {
      kept += line + "\n";
      continue;
    }
    changed = true;
    if (later) continue;
    log()->warn("[{}] {} line {} is no whole record (the run was cut off there) and is left out", place_, path, number);
  }
  check(!in.bad(), place_, "cannot read {}", path);
  if (changed) checkpoint::replace_file(path_, std::as_bytes(std::span(kept)));
}

void JsonLines::open() {
  file_.reset(std::fopen(path_.c_str(), "ae"));
  check(file_ != nullptr, place_, "cannot write {}: {}; expected a writable --output", path_.string(),
        std::strerror(errno));
}

void JsonLines::append(const nlohmann::ordered_json& json) {
  const std::string line = json.dump() + "\n";
  check(std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() && std::fflush(file_.get()) == 0, place_,
        "cannot write {}: {}", path_.string(), std::strerror(errno));
}

}  // namespace lockstep::train
