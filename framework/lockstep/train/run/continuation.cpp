#include "lockstep/train/run/continuation.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/core/error.h"
#include "lockstep/train/options/options.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {
namespace {

constexpr const char* kPlace = "resume";
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

struct Rule {
  const char* key;
  const char* advice;
};

// On which the bits of a step depend, beside the samples and what the user sets as part of the method.
constexpr std::array kSameWithShards{
    Rule{"threads", "pass --threads as before"},
    Rule{"instructions", "the instruction set must stay"},
    Rule{"blas", "OpenBLAS must choose the same kernels"},
    Rule{"kernels", "instruction sets, oneDNN, --precision, --conv-math and the choices of --autotune must stay"},
};
constexpr std::array kSameOptionsWithShards{
    Rule{"shards", "other shards give other bits"}, Rule{"accumulate", "micro-batches are added one after the other"},
    Rule{"wire", "every edge of the sum rounds"},   Rule{"precision", "kernels round otherwise"},
    Rule{"conv-math", "kernels round otherwise"},   Rule{"recompute", "other nodes are fused"},
};
constexpr std::array kNamed{"ranks", "threads", "instructions", "blas", "kernels", "lockstep", "compiler", "mpi"};

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const nlohmann::json& entry(const nlohmann::json& metadata, const char* name, const std::string& place) {
  const auto found = metadata.find(name);
  check(found != metadata.end(), kPlace, "{}: its metadata has no '{}'", place, name);
  return *found;
}

template <class T>
T field(const nlohmann::json& metadata, const char* name, const std::string& place) {
  try {
    return entry(metadata, name, place).get<T>();
  } catch (const nlohmann::json::exception& error) {
    fail(kPlace, "{}: '{}' in its metadata cannot be used: {}", place, name, error.what());
  }
}

std::int64_t count(const nlohmann::json& metadata, const char* name, const std::string& place) {
  const nlohmann::json& value = entry(metadata, name, place);
  check(value.is_number_unsigned() && value.get<std::uint64_t>() <= kMostCount, kPlace,
        "{}: '{}' in its metadata is {}, expected a count", place, name, text_of(value));
  return value.get<std::int64_t>();
}

void check_same(const nlohmann::json& saved, const nlohmann::json& now, const Rule& rule, const std::string& place) {
  const nlohmann::json &there = entry(saved, rule.key, place), &here = entry(now, rule.key, "this run");
  check(there == here, kPlace, "{}: '{}' is {}, this run has {}; {}", place, rule.key, text_of(there), text_of(here),
        rule.advice);
}

// What to do about an option that stops a resume.
std::string as_before(std::string_view option, const nlohmann::json& before) {
  const std::string keep = before.is_null() ? "" : fmt::format("pass --{} {} as before, or ", option, text_of(before));
  return keep + "leave --resume out to begin a new run";
}

const nlohmann::json& options_of(const nlohmann::json& metadata, const std::string& place) {
  const nlohmann::json& options = entry(metadata, "options", place);
  check(options.is_object(), kPlace, "{}: 'options' in its metadata cannot be used: expected an object", place);
  return options;
}

// The samples of an epoch: said by the options that choose them, where one of them has changed.
void check_samples(const nlohmann::json& saved, const nlohmann::json& now, const std::string& place) {
  const nlohmann::json &before = entry(saved, "train_samples", place), &here = entry(now, "train_samples", "this run");
  if (before == here) return;
  const nlohmann::json &options = options_of(saved, place), &ours = options_of(now, "this run");
  for (const char* option : {"dataset", "limit-train"}) {
    if (!options.contains(option) || options[option] == ours[option]) continue;
    fail(kPlace,
         "{}: --{} was {}, this run has {}, so 'train_samples' is {}, this run has {}: the position in the epoch needs "
         "the same data; {}",
         place, option, text_of(options[option]), text_of(ours[option]), text_of(before), text_of(here),
         as_before(option, options[option]));
  }
  check_same(saved, now, {"train_samples", "the position in the epoch needs the same data: has --data-dir changed?"},
             place);
}

void check_bits(const nlohmann::json& saved, const nlohmann::json& now, const std::string& place) {
  const nlohmann::json &there = options_of(saved, place), &here = options_of(now, "this run");
  for (const Rule& rule : kSameOptionsWithShards) {
    const nlohmann::json none;
    const nlohmann::json& before = there.contains(rule.key) ? there[rule.key] : none;
    check(before == here[rule.key], kPlace, "{}: with --shards, --{} was {}, this run has {}: {}; {}", place, rule.key,
          text_of(before), text_of(here[rule.key]), rule.advice, as_before(rule.key, before));
  }
  for (const Rule& rule : kSameWithShards)
    check_same(saved, now, {rule.key, ("with --shards, " + std::string(rule.advice)).c_str()}, place);
}

}  // namespace

nlohmann::json parse_metadata(const std::string& text, const std::string& place) {
  nlohmann::json metadata = parse_json(text);
  check(metadata.is_object(), kPlace, "{}: its metadata is no JSON object; a weights file cannot be resumed", place);
  return metadata;
}

Continuation continuation(const nlohmann::json& saved, const nlohmann::json& now, const std::string& place) {
  const std::int64_t version = count(saved, "version", place);
  check(version <= kMetadataVersion, kPlace, "{}: version {}, this program knows up to {}", place, version,
        kMetadataVersion);
  Continuation at{.step = count(saved, "step", place),
                  .epoch = count(saved, "epoch", place),
                  .offset = count(saved, "offset", place)};
  check_same(saved, now, {"optimizer", as_before("optimizer", entry(saved, "optimizer", place)).c_str()}, place);
  check_samples(saved, now, place);
  const auto samples = field<std::int64_t>(now, "train_samples", "this run");
  check(at.offset <= samples, kPlace, "{}: 'offset' is {}, expected at most the {} samples of an epoch", place,
        at.offset, samples);
  const nlohmann::json& options = options_of(now, "this run");
  if (options["global-batch"] == 0) {  // it follows from --batch-size and the number of ranks, which may have changed
    check_same(saved, now, {"global_batch", "pass --global-batch to keep it, or to change it on purpose"}, place);
  }
  if (at.offset > 0) {
    const std::string advice = "an epoch keeps its order of samples; " + as_before("seed", entry(saved, "seed", place));
    check_same(saved, now, {"seed", advice.c_str()}, place);
  }
  if (options["shards"] != 0) check_bits(saved, now, place);
  for (const std::string& line :
       differences(options_of(saved, place).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                   options.dump(), "in the checkpoint", "now")) {
    if (!line.starts_with("--resume:")) at.notes.push_back(line);
  }
  for (const char* key : kNamed) {
    if (!saved.contains(key) || !now.contains(key) || saved[key] == now[key]) continue;
    at.notes.push_back(fmt::format("{}: {} in the checkpoint, {} now", key, text_of(saved[key]), text_of(now[key])));
  }
  return at;
}

std::string model_difference(const nlohmann::json& saved, const nlohmann::json& now) {
  const nlohmann::json there = saved.value("options", nlohmann::json::object());
  const nlohmann::json here = now.value("options", nlohmann::json::object());
  nlohmann::json common = nlohmann::json::parse(canonical(Options{}));
  common.erase("dataset");  // which decides how many classes and channels there are
  std::string text;
  for (const auto& [key, before] : there.items()) {
    if (common.contains(key) || !here.contains(key) || here[key] == before) continue;
    text += fmt::format("{}--{} was {}, this run has {}; {}", text.empty() ? "" : "; ", key, text_of(before),
                        text_of(here[key]), as_before(key, before));
  }
  return text;
}

}  // namespace lockstep::train
