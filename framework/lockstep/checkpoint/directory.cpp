#include "lockstep/checkpoint/directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
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

constexpr const char *kHighest = "highest", *kLowest = "lowest";

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

OpenBase base_in(const io::Folder& directory) {
  return [&directory](const std::string& name) { return io::FileReader(directory, name); };
}

// Returns the last of `entries` in `directory` whose hash matches; of an increment, its base's too. Throws Unavailable
// if one of them cannot be read.
std::optional<Entry> last_whole(const io::Folder& directory, std::span<const Entry> entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      io::FileReader reader(directory, name_for(entry->step));
      verify(reader);
      io::FileReader head(directory, name_for(entry->step));
      if (const auto base = base_of(read_note(head))) {
        io::FileReader of_base(directory, name_for(base->step));
        const io::Envelope envelope = io::read_envelope(of_base);
        if (envelope.hash != base->hash) continue;  // another file of the base's step
        io::verify_payload(of_base, envelope);
      }
      return *entry;
    } catch (const Unavailable&) {
      throw;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
}

// Takes from `old` the bases of increments that stay: those of `entries` that are not in `old`. A file that stays and
// cannot be read may need any of them: then all stay, if there are increments.
void keep_bases(const io::Folder& directory, std::span<const Entry> entries, std::vector<Entry>& old) {
  if (old.empty()) return;
  std::set<std::int64_t> bases;
  bool are_increments = false, is_unread = false;
  for (const Entry& entry : entries) {
    if (entry.step < old.front().step) continue;
    const bool stays = std::ranges::none_of(old, [&](const Entry& other) { return other.step == entry.step; });
    try {
      io::FileReader reader(directory, name_for(entry.step));
      const auto base = base_of(read_note(reader));
      are_increments = are_increments || base;
      if (base && stays) bases.insert(base->step);
    } catch (const Error&) {
      is_unread = is_unread || stays;
    }
  }
  if (are_increments && is_unread) {
    old.clear();
    return;
  }
  std::erase_if(old, [&](const Entry& entry) { return bases.contains(entry.step); });
}

// Returns the value by which checkpoints are compared; empty: this one has none.
std::optional<double> value_of(const Score& score, const std::string& name) {
  if (name == Retention::kLoss) return score.loss;
  const auto found = score.metrics.find(name);
  return found == score.metrics.end() ? std::nullopt : std::optional(found->second);
}

// The checkpoints that have a value of the rule best:NAME.
struct Ranking {
  std::vector<Best> ranked = {};           // the best one first, and of equal ones the oldest
  std::vector<std::int64_t> unread = {};   // steps whose value is not known, as the system does not give their files
  std::optional<Unavailable> reason = {};  // of the first of them
};

// Skips a file whose header is damaged.
Ranking ranking(const io::Folder& directory, std::span<const Entry> entries, const Retention& keep) {
  Ranking result;
  for (const Entry& entry : entries) {
    std::optional<Score> score;
    try {
      io::FileReader reader(directory, name_for(entry.step));
      score = score_of(read_note(reader));
    } catch (const Unavailable& error) {
      result.unread.push_back(entry.step);
      if (!result.reason) result.reason = error;
      continue;
    } catch (const Error&) {
      continue;
    }
    const std::optional<double> value = score ? value_of(*score, keep.best) : std::nullopt;
    if (value && !std::isnan(*value)) result.ranked.push_back({entry, keep.best, *value});
  }
  std::ranges::stable_sort(
      result.ranked, [&](double a, double b) { return keep.higher_is_better ? a > b : a < b; }, &Best::value);
  return result;
}

// Returns the checkpoints with a value, as ranking() does; throws Unavailable if a better one may be among those that
// cannot be read.
std::vector<Best> whole_ranking(const io::Folder& directory, std::span<const Entry> entries, const Retention& keep) {
  Ranking result = ranking(directory, entries, keep);
  if (result.reason) throw *result.reason;
  return std::move(result.ranked);
}

// Returns the rule with which the newest evaluated checkpoint was written; empty: there is none. Throws Unavailable if
// a newer one cannot be read.
std::optional<Retention> newest_rule(const io::Folder& directory, std::span<const Entry> entries) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    try {
      io::FileReader reader(directory, name_for(entry->step));
      if (auto rule = rule_of(read_note(reader))) return rule;
    } catch (const Unavailable&) {
      throw;
    } catch (const Error&) {
      continue;
    }
  }
  return std::nullopt;
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
      if (auto file = open_checkpoint(reader, base_in(directory), wanted)) return Found{*entry, std::move(*file)};
      if (search.foreign) search.foreign(*entry, run);
    } catch (const Unavailable&) {
      throw;
    } catch (const Error& error) {
      if (search.damaged) search.damaged(*entry, error.what());
    }
  }
  return std::nullopt;
}

std::optional<Best> best(const io::Folder& directory, const Retention& keep) {
  const std::vector<Best> ranked = whole_ranking(directory, list(directory), keep);
  return ranked.empty() ? std::nullopt : std::optional(ranked.front());
}

std::optional<Found> best_whole(const fs::path& directory, const DamageReport& report) {
  const auto folder = io::Folder::find(directory);
  if (!folder) return std::nullopt;
  const std::vector<Entry> entries = list(*folder);
  const auto rule = newest_rule(*folder, entries);
  if (!rule) return std::nullopt;
  for (const Best& entry : whole_ranking(*folder, entries, *rule)) {
    try {
      io::FileReader reader(*folder, name_for(entry.step));
      if (auto file = open_checkpoint(reader, base_in(*folder), {})) return Found{entry, std::move(*file)};
    } catch (const Unavailable&) {
      throw;
    } catch (const Error& error) {
      if (report) report(entry, error.what());
    }
  }
  return std::nullopt;
}

std::string note_of(const std::string& run, const std::optional<Score>& score, const Retention& keep) {
  nlohmann::json note = {{"run", run}};
  if (score) note["loss"] = score->loss;
  if (score && !score->metrics.empty()) note["metrics"] = score->metrics;
  if (score && !keep.best.empty()) note["best"] = keep.higher_is_better ? kHighest : kLowest;
  return note.dump();
}

std::optional<Retention> rule_of(const std::string& note) {
  const nlohmann::json json = nlohmann::json::parse(note, nullptr, false);
  const std::optional<Score> score = score_of(note);
  if (!score || !json.contains("best") || (json["best"] != kHighest && json["best"] != kLowest)) return std::nullopt;
  return Retention{.best = score->metrics.empty() ? std::string(Retention::kLoss) : score->metrics.begin()->first,
                   .higher_is_better = json["best"] == kHighest};
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
  if (!old.empty() && !keep.best.empty()) {
    const Ranking found = ranking(directory, entries, keep);
    if (!found.ranked.empty()) keep_step(found.ranked.front().step);
    for (const std::int64_t step : found.unread) keep_step(step);  // any of them may be the best
  }
  const bool one_is = std::ranges::any_of(newest, [&](const Entry& entry) { return entry.step == whole; });
  if (!old.empty() && !one_is && !last_whole(directory, newest)) {
    if (const auto older = last_whole(directory, old)) keep_step(older->step);
  }
  if (whole) keep_step(whole);
  keep_bases(directory, entries, old);
  if (!entries.empty()) fault_point("checkpoint.prune", entries.back().step);
  for (const Entry& entry : old) directory.remove(name_for(entry.step));
  return old;
}

}  // namespace lockstep::checkpoint
