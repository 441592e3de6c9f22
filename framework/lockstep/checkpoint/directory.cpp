#include "lockstep/checkpoint/directory.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <system_error>

#include "lockstep/checkpoint/atomic_file.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/core/fault_point.h"

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

using Look = void (*)(const fs::path&);

// The last of `entries` that `look` finds nothing wrong with.
std::optional<Entry> last_whole(std::span<const Entry> entries, Look look, const DamageReport& report) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      look(entry->path);
      return *entry;
    } catch (const Error& error) {
      if (report) report(*entry, error.what());
    }
  }
  return std::nullopt;
}

bool is_better(const Score& a, const Score& b, Retention::Best what) {
  return what == Retention::Best::Accuracy ? a.accuracy > b.accuracy : a.loss < b.loss;
}

// The step of the best checkpoint, the oldest of equals; a file whose note cannot be read is none.
std::optional<std::int64_t> best_of(std::span<const Entry> entries, Retention::Best what) {
  std::optional<std::int64_t> step;
  Score best;
  for (const Entry& entry : entries) {
    std::optional<Score> score;
    try {
      score = score_of(read_note(entry.path));
    } catch (const Error&) {
      continue;
    }
    if (!score || (step && !is_better(*score, best, what))) continue;
    step = entry.step;
    best = *score;
  }
  return step;
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
  return last_whole(
      list(directory), [](const fs::path& path) { load(path); }, report);
}

std::string note_of(const Score& score) {
  return nlohmann::json{{"accuracy", score.accuracy}, {"loss", score.loss}}.dump();
}

std::optional<Score> score_of(const std::string& note) {
  const nlohmann::json json = nlohmann::json::parse(note, nullptr, false);
  const auto is_number = [&](const char* key) { return json.contains(key) && json[key].is_number(); };
  if (!json.is_object() || !is_number("accuracy") || !is_number("loss")) return std::nullopt;
  return Score{.accuracy = json["accuracy"], .loss = json["loss"]};
}

std::vector<Entry> prune(const fs::path& directory, const Retention& keep, std::optional<std::int64_t> whole) {
  remove_abandoned(directory);
  if (keep.last == 0) return {};
  std::vector<Entry> entries = list(directory);
  const auto kept = std::min(static_cast<std::size_t>(keep.last), entries.size());
  const std::span<const Entry> newest = std::span(entries).last(kept);
  std::vector<Entry> old(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kept));
  if (keep.every > 0) std::erase_if(old, [&](const Entry& entry) { return entry.step % keep.every == 0; });
  const auto keep_step = [&](std::optional<std::int64_t> step) {
    std::erase_if(old, [&](const Entry& entry) { return entry.step == step; });
  };
  if (!old.empty() && keep.best != Retention::Best::None) keep_step(best_of(entries, keep.best));
  const bool one_is = std::ranges::any_of(newest, [&](const Entry& entry) { return entry.step == whole; });
  if (!old.empty() && !one_is && !last_whole(newest, verify, {})) {
    if (const auto older = last_whole(old, verify, {})) keep_step(older->step);
  }
  if (!entries.empty()) fault_point("checkpoint.prune", entries.back().step);
  for (const Entry& entry : old) {
    std::error_code error;
    fs::remove(entry.path, error);
    check(!error, "checkpoint", "{}: remove: {}", entry.path.string(), error.message());
  }
  return old;
}

}  // namespace lockstep::checkpoint
