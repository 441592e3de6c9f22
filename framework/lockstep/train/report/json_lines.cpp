#include "lockstep/train/report/json_lines.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostUnwritten = 8 << 20;

}  // namespace

JsonLines::JsonLines(const Settings& settings)
    : folder_(settings.folder), name_(settings.name), site_(settings.site), prefix_(settings.prefix) {
  settings.resumed_step ? keep_until(settings) : move_aside();
}

std::optional<std::int64_t> JsonLines::step_member(const nlohmann::json& object) {
  const auto step = object.find("step");
  if (step == object.end() || !step->is_number_integer()) return std::nullopt;
  return step->get<std::int64_t>();
}

void JsonLines::check_file(const io::Folder& folder, const std::string& name, const std::string& site) {
  if (!folder.has(name)) return;
  folder.open_file(name, io::FileUse::Read, site);
  folder.open_file(name, io::FileUse::Append, site);
}

void JsonLines::move_aside() const {
  if (!folder_->has(name_)) return;
  struct stat status {};
  const io::FileDescriptor file = folder_->open_file(name_, io::FileUse::Read, site_);
  check_call(::fstat(file.get(), &status) == 0, site_, "cannot read {}", path().string());
  if (status.st_size == 0) return;
  const fs::path name = name_;
  std::string aside;
  for (int n = 1; aside.empty() || folder_->has(aside); ++n)
    aside = fmt::format("{}.{}{}", name.stem().string(), n, name.extension().string());
  folder_->move(name_, *folder_, aside);
}

std::string JsonLines::read() const {
  const io::FileDescriptor file = folder_->open_file(name_, io::FileUse::Read, site_);
  std::string text;
  std::vector<char> block(1 << 20);
  while (true) {
    const ssize_t n = ::read(file.get(), block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    check(n >= 0, site_, "cannot read {}: {}", path().string(), std::strerror(errno));
    if (n == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

void JsonLines::keep_until(const Settings& settings) const {
  if (!folder_->has(name_)) return;
  std::istringstream in(read());
  std::string kept, line;
  bool changed = false;
  for (std::int64_t number = 1; std::getline(in, line); ++number) {
    const bool whole = !in.eof();  // ends in a newline
    const bool begins = line.starts_with(prefix_);
    const auto json = parse_json(std::string_view(line).substr(begins ? prefix_.size() : 0));
    const auto step = whole && begins && json.is_object() ? settings.step(json) : std::nullopt;
    const bool later = step && *step > *settings.resumed_step;
    if (step && !later && settings.stays(json)) {
      kept += line + "\n";
      continue;
    }
    changed = true;
    if (later) continue;
    log()->warn("[{}] {} line {} is no complete record (the run was killed there) and is removed", site_,
                path().string(), number);
  }
  if (changed) io::replace_file(*folder_, name_, std::as_bytes(std::span(kept)));
}

void JsonLines::open() { file_ = folder_->open_file(name_, io::FileUse::Append, site_); }

void JsonLines::follow(const std::shared_ptr<const io::Folder>& folder) {
  if (!file_.open() || folder->holds(name_, file_.get())) return;
  io::FileDescriptor file = folder->open_file(name_, io::FileUse::Append, site_);
  log()->warn("[{}] {} was removed or replaced during the run; further lines go to {}", site_, path().string(),
              (folder->path() / name_).string());
  file_ = std::move(file);
  folder_ = folder;
  if (!std::exchange(in_line_, false)) return;
  unwritten_.erase(0, unwritten_.find('\n') + 1);  // the rest of a line whose start is in the other file
  ++lost_;
}

void JsonLines::append_text(const std::string& object) {
  const std::string line = prefix_ + object + "\n";
  const bool room = unwritten_.size() + line.size() <= kMostUnwritten;
  if (room) unwritten_ += line;
  if (!room) ++lost_;
  if (const int code = write_out(); code != 0) {
    if (!std::exchange(failing_, true))
      log()->warn("[{}] cannot write {}: {}; training goes on, and lines wait in memory", site_, path().string(),
                  std::strerror(code));
  } else if (std::exchange(failing_, false)) {
    const std::string gap = lost_ > 0 ? fmt::format("; {} lines that did not fit in memory are lost", lost_) : "";
    log()->warn("[{}] {} can be written again; the waiting lines are in it{}", site_, path().string(), gap);
    lost_ = 0;
  }
}

// Writes `unwritten_` and removes the written bytes from it, also inside a line. Returns 0 or the error number.
int JsonLines::write_out() {
  std::size_t done = 0;
  int code = 0;
  while (done < unwritten_.size() && code == 0) {
    const ssize_t n = ::write(file_.get(), unwritten_.data() + done, unwritten_.size() - done);
    if (n < 0 && errno != EINTR) code = errno;
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  if (done > 0) in_line_ = unwritten_[done - 1] != '\n';
  unwritten_.erase(0, done);
  return code;
}

JsonLines::~JsonLines() {
  if (unwritten_.empty()) return;
  if (const int code = write_out(); code != 0)
    log()->warn("[{}] the last {} bytes of {} are lost: {}", site_, unwritten_.size(), path().string(),
                std::strerror(code));
}

}  // namespace lockstep::train
