#include "lockstep/checkpoint/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/core/fault_point.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/io/read_file.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;

// Returns the step that a file name of name_for() contains; empty for other names.
std::optional<std::int64_t> step_of(const std::string& name) {
  constexpr std::string_view prefix = "step-";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t step = 0;
  const char* begin = name.data() + prefix.size();
  const auto parsed = std::from_chars(begin, name.data() + name.size(), step);
  if (parsed.ec != std::errc() || step < 0 || name_for(step) != name) return std::nullopt;
  return step;
}

// Returns the last of `entries` in `directory` whose hash matches.
std::optional<Entry> last_whole(const io::Folder& directory, std::span<const Entry> entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      io::FileReader reader(directory, name_for(entry->step));
      verify(reader);
      return *entry;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

// Returns the value by which checkpoints are compared; empty: this one has none.
std::optional<double> value_of(const Score& score, const std::string& name) {
  if (name == Retention::kLoss) return score.loss;
  const auto found = score.metrics.find(name);
  return found == score.metrics.end() ? std::nullopt : std::optional(found->second);
}

// Returns the step of the best checkpoint, the oldest one if scores are equal. Skips a file whose note cannot be read.
std::optional<std::int64_t> best_of(const io::Folder& directory, std::span<const Entry> entries,
                                    const Retention& keep) {
  std::optional<std::int64_t> step;
  double best = 0;
  for (const Entry& entry : entries) {
    std::optional<Score> score;
    try {
      io::FileReader reader(directory, name_for(entry.step));
      score = score_of(read_note(reader));
    } catch (const Error&) {
      continue;
    }
    const std::optional<double> value = score ? value_of(*score, keep.best) : std::nullopt;
    if (!value || (step && !(keep.higher_is_better ? *value > best : *value < best))) continue;
    step = entry.step;
    best = *value;
  }
  return step;
}

}  // namespace

std::string name_for(std::int64_t step) { return fmt::format("step-{:010}.h5", step); }

fs::path path_for(const fs::path& directory, std::int64_t step) {
  check(step >= 0, "checkpoint", "step is {}, expected at least 0", step);
  return directory / name_for(step);
}

std::vector<Entry> list(const fs::path& directory) {
  const auto folder = io::Folder::find(directory);
  return folder ? list(*folder) : std::vector<Entry>();
}

std::vector<Entry> list(const io::Folder& directory) {
  std::vector<Entry> entries;
  for (const std::string& name : directory.names()) {
    if (const auto step = step_of(name)) entries.push_back({*step, directory.path() / name});
  }
  std::ranges::sort(entries, {}, &Entry::step);
  return entries;
}

std::optional<Found> newest_whole(const fs::path& directory, const DamageReport& report) {
  const auto folder = io::Folder::find(directory);
  return folder ? newest_whole(*folder, {.damaged = report}) : std::nullopt;
}

std::optional<Found> newest_whole(const io::Folder& directory, const Search& search) {
  const std::vector<Entry> entries = list(directory);
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    std::string run;
    const auto wanted = [&](const std::string& note) {
      run = run_of(note);
      return search.run.empty() || run.empty() || run == search.run;
    };
    try {
      io::FileReader reader(directory, name_for(entry->step));
      if (auto file = open_checkpoint(reader, wanted)) return Found{*entry, std::move(*file)};
      if (search.foreign) search.foreign(*entry, run);
    } catch (const Error& error) {
      if (search.damaged) search.damaged(*entry, error.what());
    }
  }
  return std::nullopt;
}

std::string note_of(const std::string& run, const std::optional<Score>& score) {
  nlohmann::json note = {{"run", run}};
  if (score) note["loss"] = score->loss;
  if (score && !score->metrics.empty()) note["metrics"] = score->metrics;
  return note.dump();
}

std::string run_of(const std::string& note) {
  const nlohmann::json json = nlohmann::json::parse(note, nullptr, false);
  const bool says = json.is_object() && json.contains("run") && json["run"].is_string();
  std::string run = says ? json["run"].get<std::string>() : "";
  return is_run_id(run) ? run : "";
}

std::optional<Score> score_of(const std::string& note) {
  const nlohmann::json json = nlohmann::json::parse(note, nullptr, false);
  const auto is_number = [&](const char* key) { return json.contains(key) && json[key].is_number(); };
  if (!json.is_object() || !is_number("loss")) return std::nullopt;
  Score score{.loss = json["loss"]};
  if (is_number("accuracy")) score.metrics["accuracy"] = json["accuracy"].get<double>();  // files before metrics
  const nlohmann::json metrics = json.value("metrics", nlohmann::json::object());
  for (const auto& metric : metrics.items()) {
    if (metric.value().is_number()) score.metrics[metric.key()] = metric.value().get<double>();
  }
  return score;
}

std::vector<Entry> prune(const io::Folder& directory, const Retention& keep, std::optional<std::int64_t> whole) {
  io::remove_abandoned(directory);
  if (keep.last == 0) return {};
  std::vector<Entry> entries = list(directory);
  const auto kept = std::min(static_cast<std::size_t>(keep.last), entries.size());
  const std::span<const Entry> newest = std::span(entries).last(kept);
  std::vector<Entry> old(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(kept));
  if (keep.every > 0) std::erase_if(old, [&](const Entry& entry) { return entry.step % keep.every == 0; });
  const auto keep_step = [&](std::optional<std::int64_t> step) {
    std::erase_if(old, [&](const Entry& entry) { return entry.step == step; });
  };
  if (!old.empty() && !keep.best.empty()) keep_step(best_of(directory, entries, keep));
  const bool one_is = std::ranges::any_of(newest, [&](const Entry& entry) { return entry.step == whole; });
  if (!old.empty() && !one_is && !last_whole(directory, newest)) {
    if (const auto older = last_whole(directory, old)) keep_step(older->step);
  }
  if (!entries.empty()) fault_point("checkpoint.prune", entries.back().step);
  for (const Entry& entry : old) directory.remove(name_for(entry.step));
  return old;
}

}  // namespace lockstep::checkpoint
