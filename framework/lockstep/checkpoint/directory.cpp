#include "lockstep/checkpoint/directory.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string_view>
#include <system_error>

#include "lockstep/checkpoint/atomic_file.h"
#include "lockstep/checkpoint/file.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string name_for(std::int64_t step) { return fmt::format("step-{:010}.h5", step); }

// Empty for names that name_for() does not give.
std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* begin = name.data() + prefix.size();
  const auto parsed = std::from_chars(begin, name.data() + name.size(), step);
  if (parsed.ec != std::errc() || step < 0 || name_for(step) != name) return std::nullopt;
  return step;
}

std::optional<std::string> damage_of(const fs::path& path) {
  try {
    verify(path);
    return std::nullopt;
  } catch (const Error& error) {
    return error.what();
  }
}

// The last of `entries` that verifies.
std::optional<Entry> last_whole(std::span<const Entry> entries, const DamageReport& report) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    const auto damage = damage_of(entry->path);
    if (!damage) return *entry;
    if (report) report(*entry, *damage);
  }
  return std::nullopt;
}

}  // namespace

fs::path path_for(const fs::path& directory, std::int64_t step) {
  check(step >= 0, "checkpoint", "step is {}, expected at least 0", step);
  return directory / name_for(step);
}

std::vector<Entry> list(const fs::path& directory) {
  std::error_code error;
  std::vector<Entry> entries;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    if (const auto step = step_of(it->path().filename().string())) entries.push_back({*step, it->path()});
  }
  check(!error || error == std::errc::no_such_file_or_directory, "checkpoint", "{}: read directory: {}",
        directory.string(), error.message());
  std::ranges::sort(entries, {}, &Entry::step);
  return entries;
}

std::optional<Entry> newest_whole(const fs::path& directory, const DamageReport& report) {
  return last_whole(list(directory), report);
}

std::vector<Entry> prune(const fs::path& directory, std::int64_t keep) {
  check(keep >= 1, "checkpoint", "{}: keep is {}, expected at least 1", directory.string(), keep);
  remove_abandoned(directory);
  std::vector<Entry> entries = list(directory);
  const auto kept = std::min(static_cast<std::size_t>(keep), entries.size());
  const std::span<const Entry> newest = std::span(entries).last(kept);
  std::vector<Entry> old(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kept));
  if (!old.empty() && !last_whole(newest, {})) {
    if (const auto whole = last_whole(old, {})) {
      std::erase_if(old, [&](const Entry& entry) { return entry.step == whole->step; });
    }
  }
  for (const Entry& entry : old) {
    std::error_code error;
    fs::remove(entry.path, error);
    check(!error, "checkpoint", "{}: remove: {}", entry.path.string(), error.message());
  }
  return old;
}

}  // namespace lockstep::checkpoint
