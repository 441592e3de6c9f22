#include "lockstep/train/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <utility>

#include "lockstep/checkpoint/atomic_file.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/train/json_text.h"

namespace lockstep::train {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostUnwritten = 8 << 20;

}  // namespace

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
  file_ = checkpoint::FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  const int code = errno;
  check(file_.open(), place_, "cannot write {}: {}; expected a writable --output", path_.string(), std::strerror(code));
}

void JsonLines::append(const nlohmann::ordered_json& json) {
  const std::string line = json.dump() + "\n";
  const bool room = unwritten_.size() + line.size() <= kMostUnwritten;
  if (room) unwritten_ += line;
  if (!room) ++lost_;
  if (const int code = write_out(); code != 0) {
    if (!std::exchange(failing_, true))
      log()->warn("[{}] cannot write {}: {}; training goes on, and its lines are kept until it can be written", place_,
                  path_.string(), std::strerror(code));
  } else if (std::exchange(failing_, false)) {
    const std::string gap = lost_ > 0 ? fmt::format(", but {} lines more than memory was kept for", lost_) : "";
    log()->warn("[{}] {} is written again, with all that was kept{}", place_, path_.string(), gap);
    lost_ = 0;
  }
}

// What was written leaves `unwritten_`, also in mid-line. 0, or the system's error.
int JsonLines::write_out() {
  std::size_t done = 0;
  int code = 0;
  while (done < unwritten_.size() && code == 0) {
    const ssize_t n = ::write(file_.get(), unwritten_.data() + done, unwritten_.size() - done);
    if (n < 0 && errno != EINTR) code = errno;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  unwritten_.erase(0, done);
  return code;
}

JsonLines::~JsonLines() {
  if (unwritten_.empty()) return;
  if (const int code = write_out(); code != 0)
    log()->warn("[{}] the last {} bytes of {} are lost: {}", place_, unwritten_.size(), path_.string(),
                std::strerror(code));
}

}  // namespace lockstep::train
