#include "lockstep/train/run/continuation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/optim/rule_options.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::train {
namespace {

constexpr const char* kSite = "resume";
constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

struct Rule {
  std::string key, advice;
};

// The facts on which the bits of a step depend, in addition to samples and options.
const std::vector<Rule>& same_with_shards() {
  static const std::vector<Rule> rules{
      {"threads", "pass --threads as before"},
      {"instructions", "the instruction set must stay"},
      {"blas", "OpenBLAS must choose the same kernels"},
      {"kernels", "instruction sets, oneDNN, --precision, --conv-math and the choices of --autotune must stay"}};
  return rules;
}
constexpr std::array kNamed{"ranks", "threads", "instructions", "blas", "kernels", "lockstep", "compiler", "mpi"};
// Those on which portable bits do not depend.
constexpr std::array<std::string_view, 5> kPortable{"threads", "instructions", "blas", "compiler", "mpi"};

// Returns the rows of options with this condition for a resume.
std::vector<OptionRow> rows_with(Resume resume) {
  Options options;
  std::vector<OptionRow> rows = option_rows(options);
  std::erase_if(rows, [&](const OptionRow& row) { return row.resume != resume; });
  return rows;
}

bool is_empty(const nlohmann::json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value.is_array() && value.empty();
}

std::string text_of(const nlohmann::json& value) {
  if (is_empty(value)) return "none";
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

const nlohmann::json& entry(const nlohmann::json& metadata, const std::string& name, const std::string& file) {
  const auto found = metadata.find(name);
  check(found != metadata.end(), kSite, "{}: its metadata has no '{}'", file, name);
  return *found;
}

template <class T>
T field(const nlohmann::json& metadata, const char* name, const std::string& file) {
  try {
    return entry(metadata, name, file).get<T>();
  } catch (const nlohmann::json::exception& error) {
    fail(kSite, "{}: '{}' in its metadata cannot be used: {}", file, name, error.what());
  }
}

std::int64_t count(const nlohmann::json& metadata, const char* name, const std::string& file) {
  const nlohmann::json& value = entry(metadata, name, file);
  check(value.is_number_unsigned() && value.get<std::uint64_t>() <= kMostCount, kSite,
        "{}: '{}' in its metadata is {}, expected a count", file, name, text_of(value));
  return value.get<std::int64_t>();
}

void check_same(const nlohmann::json& saved, const nlohmann::json& now, const Rule& rule, const std::string& file) {
  const nlohmann::json &there = entry(saved, rule.key, file), &here = entry(now, rule.key, "this run");
  check(there == here, kSite, "{}: '{}' is {}, this run has {}; {}", file, rule.key, text_of(there), text_of(here),
        rule.advice);
}

// Returns the words of a command line that give an option this value.
std::string spelled(std::string_view option, const nlohmann::json& value) {
  if (value.is_boolean()) return fmt::format("--{}{}", option, value.get<bool>() ? "" : "=false");
  if (!value.is_array()) return fmt::format("--{} {}", option, text_of(value));
  std::vector<std::string> parts;
  for (const nlohmann::json& each : value) parts.push_back(text_of(each));
  return fmt::format("--{} {}", option, fmt::join(parts, ","));
}

// Returns the advice about options that prevent a resume; `words`: the options as they were, empty: unknown.
std::string as_before(std::string_view words) {
  const std::string keep = words.empty() ? "" : fmt::format("pass {} as before, or ", words);
  return keep + "omit --resume to begin a new run";
}
std::string as_before(std::string_view option, const nlohmann::json& before) {
  if (is_empty(before)) return fmt::format("leave out --{} as before, or omit --resume to begin a new run", option);
  return as_before(before.is_null() ? "" : spelled(option, before));
}

const nlohmann::json& options_of(const nlohmann::json& metadata, const std::string& file) {
  const nlohmann::json& options = entry(metadata, "options", file);
  check(options.is_object(), kSite, "{}: 'options' in its metadata cannot be used: expected an object", file);
  return options;
}

// Checks an option that the metadata contain in "options" alone; older files lack options that were added since.
void check_option(const nlohmann::json& saved, const nlohmann::json& now, const OptionRow& row,
                  const std::string& file) {
  const nlohmann::json &there = options_of(saved, file), &here = options_of(now, "this run");
  const nlohmann::json before = there.contains(row.name) ? there[row.name] : to_json(Options{}).at(row.name);
  check(before == here[row.name], kSite, "{}: --{} was {}, this run has {}: {}; {}", file, row.name, text_of(before),
        text_of(here[row.name]), row.reason, as_before(row.name, before));
}

// Checks options by the values that the metadata contain beside "options", if they do.
void check_equal(const nlohmann::json& saved, const nlohmann::json& now, Resume resume, const std::string& file) {
  for (const OptionRow& row : rows_with(resume)) {
    if (!now.contains(row.name)) {
      check_option(saved, now, row, file);
      continue;
    }
    const std::string advice = as_before(row.name, entry(saved, row.name, file));
    check_same(saved, now, {row.name, row.reason.empty() ? advice : row.reason + "; " + advice}, file);
  }
}

// Checks the number of samples of an epoch; the message names the option that chooses them if it has changed.
void check_samples(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const nlohmann::json &before = entry(saved, "train_samples", file), &here = entry(now, "train_samples", "this run");
  if (before == here) return;
  const nlohmann::json &options = options_of(saved, file), &ours = options_of(now, "this run");
  for (const OptionRow& row : rows_with(Resume::SameSamples)) {
    const std::string& option = row.name;
    if (!options.contains(option) || options[option] == ours[option]) continue;
    fail(kSite,
         "{}: --{} was {}, this run has {}, so 'train_samples' is {}, this run has {}: the position in the epoch needs "
         "the same data; {}",
         file, option, text_of(options[option]), text_of(ours[option]), text_of(before), text_of(here),
         as_before(option, options[option]));
  }
  check_same(saved, now, {"train_samples", "the position in the epoch needs the same data: has --data-dir changed?"},
             file);
}

// Checks what the records of the data say of the tokenizer of a text, if they do.
void check_tokenizer(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  constexpr const char* kKey = "tokenizer";
  const auto has = [&](const nlohmann::json& metadata) {
    return metadata.contains("data") && metadata["data"].is_object() && metadata["data"].contains(kKey);
  };
  if (!has(saved) || !has(now)) return;
  check(
      saved["data"][kKey] == now["data"][kKey], kSite,
      "{}: its text has tokens of the tokenizer {}, this run's of {}: the same numbers stand for other texts; has the "
      "vocabulary's file changed?",
      file, text_of(saved["data"][kKey]), text_of(now["data"][kKey]));
}

// Sets an option to its value in a checkpoint; a value of another type changes nothing.
struct TakeValue {
  const nlohmann::json& value;

  void operator()(bool* flag) const {
    if (value.is_boolean()) *flag = value.get<bool>();
  }
  void operator()(double* number) const {
    if (value.is_number()) *number = value.get<double>();
  }
  void operator()(const Choice& choice) const {
    if (value.is_string()) choice.set(value.get<std::string>());
  }
  template <class T>
  void operator()(const T&) const {}
};

// Returns the names of what the update rule of these options keeps for each weight.
std::vector<std::string_view> rule_states(const nlohmann::json& values) {
  Options options;
  for (const OptionRow& row : optimiser_rows(options).rows) {
    if (const auto value = values.find(row.name); value != values.end()) std::visit(TakeValue{*value}, row.value);
  }
  return optim::make_rule(options.optimizer)->states();
}

// Names the options by which the update rule keeps other states than in the checkpoint.
void check_states(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  nlohmann::json before = options_of(saved, file);
  const nlohmann::json& here = options_of(now, "this run");
  const std::string rule = text_of(entry(now, "optimizer", "this run"));
  if (here.value("optimizer", nlohmann::json()) != rule) return;  // a rule of the program's own
  before["optimizer"] = rule;
  const std::vector<std::string_view> kept = rule_states(before), wanted = rule_states(here);
  if (kept == wanted) return;
  std::vector<std::string> changes, words;
  Options options;
  for (const OptionRow& row : optimiser_rows(options).rows) {
    const nlohmann::json was = before.value(row.name, nlohmann::json()), &is = here[row.name];
    const bool same_type = was.type() == is.type() || (was.is_number() && is.is_number());
    if (!same_type || was == is) continue;
    nlohmann::json alone = here;
    alone[row.name] = was;
    if (rule_states(alone) == wanted) continue;
    changes.push_back(fmt::format("--{} was {}, this run has {}", row.name, text_of(was), text_of(is)));
    words.push_back(spelled(row.name, was));
  }
  const auto names = [](const std::vector<std::string_view>& states) {
    return states.empty() ? "nothing" : fmt::format("{}", fmt::join(states, ", "));
  };
  check(changes.empty(), kSite, "{}: {}, so {} kept {} for each weight, and keeps {} in this run; {}", file,
        fmt::format("{}", fmt::join(changes, "; ")), rule, names(kept), names(wanted),
        as_before(fmt::format("{}", fmt::join(words, " "))));
}

// The promise of a run's bits (--bits); files that are older than the option promise nothing.
std::string promise(const nlohmann::json& metadata) {
  const auto found = metadata.find("bits");
  return found != metadata.end() && found->is_string() ? found->get<std::string>() : "fast";
}

// Returns whether both runs promise the same bits. Throws Error if not, unless --change-bits allows it.
bool same_promise(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const std::string there = promise(saved), here = promise(now);
  check(there == here || options_of(now, "this run").value("change-bits", false), kSite,
        "{}: --bits was {}, this run has {}: what follows would not have the bits of the run that it continues; pass "
        "--bits {} as before, or --change-bits to go on with other bits",
        file, there, here, there);
  return there == here;
}

// With shards the bits stay, so whatever they depend on must. Portable bits depend on options alone, and under another
// promise they are other bits.
void check_bits(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const nlohmann::json &there = options_of(saved, file), &here = options_of(now, "this run");
  for (const OptionRow& row : rows_with(Resume::SameWithShards)) {
    const nlohmann::json before = there.value(row.name, nlohmann::json());
    check(before == here[row.name], kSite, "{}: with --shards, --{} was {}, this run has {}: {}; {}", file, row.name,
          text_of(before), text_of(here[row.name]), row.reason, as_before(row.name, before));
  }
  if (promise(saved) != promise(now) || promise(now) == "portable") return;
  for (const Rule& rule : same_with_shards()) check_same(saved, now, {rule.key, "with --shards, " + rule.advice}, file);
}

}  // namespace

nlohmann::json parse_metadata(const std::string& text, const std::string& file) {
  nlohmann::json metadata = parse_json(text);
  check(metadata.is_object(), kSite,
        "{}: its metadata is not a JSON object, expected a checkpoint; a weights file cannot be resumed", file);
  return metadata;
}

Continuation continuation(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const std::int64_t version = count(saved, "version", file);
  check(version <= kMetadataVersion, kSite, "{}: metadata version {}, expected at most {}", file, version,
        kMetadataVersion);
  Continuation at{
      .step = count(saved, "step", file), .epoch = count(saved, "epoch", file), .offset = count(saved, "offset", file)};
  if (saved.contains("schedule_epochs")) at.schedule_epochs = field<double>(saved, "schedule_epochs", file);
  check_equal(saved, now, Resume::Never, file);
  check_states(saved, now, file);
  check_tokenizer(saved, now, file);
  check_samples(saved, now, file);
  const bool streams = entry(now, "train_samples", "this run").is_null();
  const auto size = field<std::int64_t>(now, streams ? "epoch_size" : "train_samples", "this run");
  if (at.offset > 0) check_equal(saved, now, Resume::SameInEpoch, file);
  check(at.offset <= size, kSite, "{}: 'offset' is {}, expected at most the {} {} of an epoch", file, at.offset, size,
        streams ? "steps" : "samples");
  const nlohmann::json& options = options_of(now, "this run");
  if (options["global-batch"] == 0) {  // computed from --batch-size and the number of ranks, which may have changed
    const std::string advice =
        fmt::format("pass --global-batch {} to keep it, or another value to change it on purpose",
                    text_of(entry(saved, "global_batch", file)));
    check_same(saved, now, {"global_batch", advice}, file);
  }
  const bool promised = same_promise(saved, now, file) && promise(now) == "portable";
  if (options["shards"] != 0) check_bits(saved, now, file);
  nlohmann::json before = options_of(saved, file), here = options;
  for (const OptionRow& row : rows_with(Resume::Unsaid)) {
    before.erase(row.name);
    here.erase(row.name);
  }
  at.notes = differences(text_of(before), text_of(here), "in the checkpoint", "now");
  for (const char* key : kNamed) {
    if (promised && std::ranges::find(kPortable, key) != kPortable.end()) continue;
    if (!saved.contains(key) || !now.contains(key) || saved[key] == now[key]) continue;
    at.notes.push_back(fmt::format("{}: {} in the checkpoint, {} now", key, text_of(saved[key]), text_of(now[key])));
  }
  return at;
}

std::string model_difference(const nlohmann::json& saved, const nlohmann::json& now) {
  const nlohmann::json there = saved.value("options", nlohmann::json::object());
  const nlohmann::json here = now.value("options", nlohmann::json::object());
  Options options;
  nlohmann::json others;
  for (const OptionRow& row : option_rows(options)) {
    if (!row.shapes_model) others[row.name] = true;
  }
  std::string text;
  for (const auto& [key, before] : there.items()) {
    if (others.contains(key) || !here.contains(key) || here[key] == before) continue;
    text += fmt::format("{}--{} was {}, this run has {}; {}", text.empty() ? "" : "; ", key, text_of(before),
                        text_of(here[key]), as_before(key, before));
  }
  return text;
}

}  // namespace lockstep::train
