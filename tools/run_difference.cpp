#include "tools/run_difference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <ranges>
#include <span>
#include <string_view>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/core/error.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
using train::HashRecord;

std::int64_t step_of(const checkpoint::Checkpoint& saved, const fs::path& path) {
  const auto metadata = train::parse_json(saved.metadata);
  check(metadata.is_object() && metadata.contains("step") && metadata["step"].is_number_integer(), "compare",
        "{}: its metadata has no step", path.string());
  return metadata["step"].get<std::int64_t>();
}

std::vector<std::string> different_tensors(const HashRecord& left, const HashRecord& right) {
  std::map<std::string, std::uint64_t> others;
  for (const auto& [name, hash] : right.tensors) others[name] = hash;
  std::vector<std::string> names;
  for (const auto& [name, hash] : left.tensors) {
    const auto other = others.find(name);
    if (other == others.end() || other->second != hash) names.push_back(name);
    if (other != others.end()) others.erase(other);
  }
  for (const auto& [name, hash] : others) names.push_back(name);
  return names;
}

// Both files once, up to the first difference.
void compare_hashes(const RunFiles& left, const RunFiles& right, RunDifference& result) {
  for (const RunFiles* run : {&left, &right}) {
    if (!run->hashes && !run->is_file)
      result.unknown.push_back(fmt::format("{} has no hashes.jsonl (--hash-every)", run->path.string()));
  }
  if (!left.hashes || !right.hashes) return;
  train::HashLogReader a(*left.hashes), b(*right.hashes);
  auto mine = a.next(), theirs = b.next();
  while (mine && theirs) {
    if (mine->step != theirs->step) {
      mine->step < theirs->step ? mine = a.next() : theirs = b.next();
      continue;
    }
    ++result.hashed_steps;
    if (auto names = different_tensors(*mine, *theirs); !names.empty()) {
      result.hashes = {mine->step, static_cast<std::int64_t>(mine->tensors.size()), std::move(names)};
      return;
    }
    result.last_equal = mine->step;
    mine = a.next();
    theirs = b.next();
  }
  if (result.hashed_steps == 0) result.unknown.push_back("the two hash logs have no step in common");
}

using Contents = std::shared_ptr<const checkpoint::Checkpoint>;

Contents load(const RunFiles& run, const fs::path& path, RunDifference& result) {
  if (run.contents) return run.contents;
  try {
    return std::make_shared<const checkpoint::Checkpoint>(checkpoint::load(path));
  } catch (const Error& error) {
    result.unknown.push_back(error.what());
    return nullptr;
  }
}

// The part of a run's metadata that can change bits; all else tells which run it was, where it stood and how it came
// out.
constexpr std::array kCauseKeys{"program",  "seed",         "train_samples", "global_batch", "ranks",
                                "threads",  "instructions", "blas",          "kernels",      "lockstep",
                                "compiler", "mpi",          "optimizer"};
// The facts that cannot change bits while both runs have the same shards (docs/bits.md).
constexpr std::array kFreeKeys{"ranks"};
// The facts that cannot change bits if both runs promise portable ones (--bits portable).
constexpr std::array<std::string_view, 5> kPortableKeys{"threads", "instructions", "blas", "compiler", "mpi"};

bool is_portable(const nlohmann::json& metadata) { return metadata.value("bits", nlohmann::json()) == "portable"; }

bool have_same_shards(const nlohmann::json& a, const nlohmann::json& b) {
  const auto shards = [](const nlohmann::json& options) {
    const auto found = options.find("shards");
    return found != options.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
  };
  return shards(a) > 0 && shards(a) == shards(b);
}

void erase(nlohmann::json& object, std::span<const char* const> keys) {
  for (const char* key : keys) object.erase(key);
}

// Options of both runs that can be no cause: files, logs and checks; with the same shards also how sums are computed.
void erase_options(nlohmann::json& options, bool same_shards) {
  train::Options all;
  for (const train::OptionRow& row : train::option_rows(all)) {
    const bool free = same_shards && row.effect == train::Effect::Order;
    if (free || row.effect == train::Effect::None) options.erase(row.name);
  }
}

// Lines that tell what is not alike beside the tensors and could be why they differ.
std::vector<std::string> causes(const std::string& left, const std::string& right) {
  nlohmann::json a = train::parse_json(left), b = train::parse_json(right);
  if (!a.is_object() || !b.is_object()) return {"metadata that is no JSON object: what differs is not known"};
  std::vector<std::string> lines;
  nlohmann::json mine = a.value("options", nlohmann::json()), theirs = b.value("options", nlohmann::json());
  if (mine.is_object() && theirs.is_object()) {
    const bool free = have_same_shards(mine, theirs);
    for (nlohmann::json* options : {&mine, &theirs}) erase_options(*options, free);
    for (nlohmann::json* metadata : {&a, &b}) {
      if (free) erase(*metadata, kFreeKeys);
    }
    lines = train::differences(mine.dump(), theirs.dump(), "in the first", "in the second");
  }
  const bool portable = is_portable(a) && is_portable(b);
  for (const char* key : kCauseKeys) {
    const bool free = std::ranges::find(kPortableKeys, key) != kPortableKeys.end();
    if (portable && free) continue;
    const std::string x = a.contains(key) ? a[key].dump() : "not recorded";
    const std::string y = b.contains(key) ? b[key].dump() : "not recorded";
    if (x == y) continue;
    lines.push_back(fmt::format("{}: {} in the first, {} in the second{}", key, x, y,
                                free ? " (no cause if both runs have --bits portable)" : ""));
  }
  return lines;
}

struct Pair {
  std::int64_t left_step, right_step;
  fs::path left, right;
};

std::vector<Pair> common_checkpoints(const RunFiles& left, const RunFiles& right) {
  if (left.is_file && right.is_file) {
    const auto &a = *left.checkpoints.begin(), &b = *right.checkpoints.begin();
    return {{a.first, b.first, a.second, b.second}};
  }
  std::vector<Pair> pairs;
  for (const auto& [step, path] : left.checkpoints) {
    if (const auto other = right.checkpoints.find(step); other != right.checkpoints.end())
      pairs.push_back({step, step, path, other->second});
  }
  return pairs;
}

// By rising step, up to the first difference; what both were told comes from the last pair that was read.
void compare_checkpoints(const RunFiles& left, const RunFiles& right, const std::vector<Pair>& pairs,
                         RunDifference& result) {
  for (const Pair& pair : pairs) {
    const Contents mine = load(left, pair.left, result);
    const Contents theirs = mine ? load(right, pair.right, result) : nullptr;
    if (!theirs) continue;
    ++result.checkpoints;
    result.causes = causes(mine->metadata, theirs->metadata);
    if (auto found = tensor_differences(mine->tensors, theirs->tensors); !found.empty()) {
      result.saved = {pair.left_step, pair.right_step, static_cast<std::int64_t>(mine->tensors.size()),
                      std::move(found)};
      return;
    }
    if (!result.hashes || pair.left_step < result.hashes->step)
      result.last_equal = std::max(result.last_equal.value_or(0), pair.left_step);
  }
}

std::string steps_of(const RunFiles& run) {
  if (run.checkpoints.empty()) return fmt::format("{} has no checkpoint", run.path.string());
  std::vector<std::int64_t> steps;
  for (const auto& [step, file] : run.checkpoints) steps.push_back(step);
  return fmt::format("{} has those of step {}", run.path.string(), fmt::join(steps, ", "));
}

// Of its checkpoints; of one file there is no last.
std::int64_t last_step(const RunFiles& run) {
  return run.is_file || run.checkpoints.empty() ? 0 : run.checkpoints.rbegin()->first;
}

}  // namespace

RunFiles::RunFiles(const fs::path& given) : path(given) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    if (fs::exists(train::hash_log_path(path), error)) hashes = train::hash_log_path(path);
    const fs::path below = path / "checkpoints";
    for (auto& [step, file] : checkpoint::list(fs::is_directory(below, error) ? below : path)) checkpoints[step] = file;
    return;
  }
  is_file = true;
  contents = std::make_shared<const checkpoint::Checkpoint>(checkpoint::load(path));
  checkpoints[step_of(*contents, path)] = path;
}

std::int64_t RunDifference::first_step() const {
  if (!hashes) return saved->step;
  return saved ? std::min(hashes->step, saved->step) : hashes->step;
}

RunDifference difference(const RunFiles& left, const RunFiles& right) {
  RunDifference result;
  compare_hashes(left, right, result);
  const std::vector<Pair> pairs = common_checkpoints(left, right);
  compare_checkpoints(left, right, pairs, result);
  if (result.saved && !result.hashes && result.last_equal && *result.last_equal >= result.saved->step) {
    result.unknown.push_back(fmt::format(
        "how the checkpoints of step {} came to differ: the hash logs agree there, so one was changed afterwards",
        result.saved->step));
    result.last_equal.reset();
  }
  const std::string have = fmt::format("{}; {}", steps_of(left), steps_of(right));
  if (pairs.empty()) result.unknown.push_back("no checkpoint of a common step: " + have);
  if (result.hashes && !result.saved && !pairs.empty())
    result.unknown.push_back(fmt::format("no checkpoint of a common step from {} on: {}", result.hashes->step, have));
  // Without a common step, the newest of each still tell how the runs were started.
  if (result.checkpoints == 0 && !result.equal() && !left.checkpoints.empty() && !right.checkpoints.empty()) {
    const Contents mine = load(left, left.checkpoints.rbegin()->second, result);
    const Contents theirs = load(right, right.checkpoints.rbegin()->second, result);
    if (mine && theirs) result.causes = causes(mine->metadata, theirs->metadata);
  }
  if (result.equal()) result.causes.clear();  // of nothing
  if (const auto a = last_step(left), b = last_step(right); result.equal() && a != b) {
    result.unknown.push_back(fmt::format("what follows step {}: {} ends there, {} goes on to step {}", std::min(a, b),
                                         (a < b ? left : right).path.string(), (a < b ? right : left).path.string(),
                                         std::max(a, b)));
  }
  return result;
}

}  // namespace lockstep::tools
