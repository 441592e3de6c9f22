#include "lockstep/train/report/json_lines.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <sstream>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep::train {
namespace fs = std::filesystem;

JsonLines::JsonLines(const Settings& settings)
    : folder_(settings.folder),
      name_(settings.name),
      site_(settings.site),
      prefix_(settings.prefix),
      file_(settings.site, "line") {
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
    const auto json = settings.parse(std::string_view(line).substr(begins ? prefix_.size() : 0));
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
  if (changed) io::replace_file(*folder_, name_, kept, site_);
}

void JsonLines::open() { file_.open(folder_->open_file(name_, io::FileUse::Append, site_), path()); }

bool JsonLines::follow(const std::shared_ptr<const io::Folder>& folder) {
  if (!file_.is_open() || folder->holds(name_, file_.descriptor())) return false;
  io::FileDescriptor file = folder->open_file(name_, io::FileUse::Append, site_);
  log()->warn("[{}] {} was removed or replaced during the run; further lines go to {}", site_, path().string(),
              (folder->path() / name_).string());
  folder_ = folder;
  file_.open(std::move(file), path());
  return true;
}

}  // namespace lockstep::train
