#include "lockstep/train/run/continuation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/optim/rule_options.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/report/json_text.h"
#include "lockstep/train/run/metadata_values.h"

namespace lockstep::train {
namespace {

constexpr std::uint64_t kMostCount = std::uint64_t{1} << 62;

struct Rule {
  std::string key, advice;
};

// The facts on which the bits of a step depend, in addition to samples and options.
const std::vector<Rule>& same_with_shards() {
  static const std::vector<Rule> rules{
      {"threads", "pass --threads as before"},
      {"instructions", "the instruction set must stay"},
      {"blas", "the BLAS and its choice of kernels must stay"},
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

template <class T>
T field(const nlohmann::json& metadata, const char* name, const std::string& file) {
  try {
    return metadata_entry(metadata, name, file).get<T>();
  } catch (const nlohmann::json::exception& error) {
    fail(kResumeSite, "{}: '{}' in its metadata cannot be used: {}", file, name, error.what());
  }
}

std::int64_t count(const nlohmann::json& metadata, const char* name, const std::string& file) {
  const nlohmann::json& value = metadata_entry(metadata, name, file);
  check(value.is_number_unsigned() && value.get<std::uint64_t>() <= kMostCount, kResumeSite,
        "{}: '{}' in its metadata is {}, expected a count", file, name, text_of(value));
  return value.get<std::int64_t>();
}

// Checks an option that the metadata contain in "options" alone; older files lack options that were added since.
void check_option(const nlohmann::json& saved, const nlohmann::json& now, const OptionRow& row,
                  const std::string& file) {
  const nlohmann::json &there = options_of(saved, file), &here = options_of(now, "this run");
  const nlohmann::json before = there.contains(row.name) ? there[row.name] : to_json(Options{}).at(row.name);
  check(before == here[row.name], kResumeSite, "{}: --{} was {}, this run has {}: {}; {}", file, row.name,
        text_of(before), text_of(here[row.name]), row.reason, as_before(row.name, before));
}

// Checks options by the values that the metadata contain beside "options", if they do.
void check_equal(const nlohmann::json& saved, const nlohmann::json& now, Resume resume, const std::string& file) {
  for (const OptionRow& row : rows_with(resume)) {
    if (!now.contains(row.name)) {
      check_option(saved, now, row, file);
      continue;
    }
    const std::string advice = as_before(row.name, metadata_entry(saved, row.name, file));
    check_same(saved, now, row.name, row.reason.empty() ? advice : row.reason + "; " + advice, file);
  }
}

// Checks the number of samples of an epoch; the message names the option that chooses them if it has changed.
void check_samples(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const nlohmann::json &before = metadata_entry(saved, "train_samples", file),
                       &here = metadata_entry(now, "train_samples", "this run");
  if (before == here) return;
  const nlohmann::json &options = options_of(saved, file), &ours = options_of(now, "this run");
  for (const OptionRow& row : rows_with(Resume::SameSamples)) {
    const std::string& option = row.name;
    if (!options.contains(option) || options[option] == ours[option]) continue;
    fail(kResumeSite,
         "{}: --{} was {}, this run has {}, so 'train_samples' is {}, this run has {}: the position in the epoch needs "
         "the same data; {}",
         file, option, text_of(options[option]), text_of(ours[option]), text_of(before), text_of(here),
         as_before(option, options[option]));
  }
  check_same(saved, now, "train_samples", "the position in the epoch needs the same data: has --data-dir changed?",
             file);
}

// Returns an entry of what the data's record says; null: it says nothing of it.
const nlohmann::json& of_data(const nlohmann::json& metadata, const char* key) {
  static const nlohmann::json nothing;
  const auto data = metadata.find("data");
  if (data == metadata.end() || !data->is_object()) return nothing;
  const auto found = data->find(key);
  return found == data->end() ? nothing : *found;
}

// Checks the tokenizer of a text.
void check_tokenizer(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const nlohmann::json &there = of_data(saved, "tokenizer"), &here = of_data(now, "tokenizer");
  check(
      there.is_null() || here.is_null() || there == here, kResumeSite,
      "{}: its text has tokens of the tokenizer {}, this run's of {}: the same numbers stand for other texts; has the "
      "vocabulary's file changed?",
      file, text_of(there), text_of(here));
}

// Checks the program's own options by which the data's samples are what they are: the record of the data has them.
void check_defining_options(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file) {
  const nlohmann::json &there = of_data(saved, kDefiningOptions), &here = of_data(now, kDefiningOptions);
  if (!there.is_object() || !here.is_object()) return;
  for (const auto& [option, value] : here.items()) {
    const auto before = there.find(option);
    check(before == there.end() || *before == value, kResumeSite,
          "{}: --{} was {}, this run has {}: the samples are others; {}", file, option,
          before == there.end() ? "" : text_of(*before), text_of(value),
          before == there.end() ? "" : as_before(option, *before));
  }
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
  const std::string rule = text_of(metadata_entry(now, "optimizer", "this run"));
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
  check(changes.empty(), kResumeSite, "{}: {}, so {} kept {} for each weight, and keeps {} in this run; {}", file,
        fmt::format("{}", fmt::join(changes, "; ")), rule, names(kept), names(wanted),
        as_before(fmt::format("{}", fmt::join(words, " "))));
}

// The promise of a run's bits (--bits); files that are older than the option promise nothing.
std::string promise(const nlohmann::json& metadata) {
  const auto found = metadata.find("bits");
  return found != metadata.end() && found->is_string() ? found->get<std::string>() : "fast";
}

// Returns whether both runs promise the same bits. Throws Error if not, unless --change-bits allows it.
bool same_promise(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file, bool change_bits) {
  const std::string there = promise(saved), here = promise(now);
  check(there == here || change_bits, kResumeSite,
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
    check(before == here[row.name], kResumeSite, "{}: with --shards, --{} was {}, this run has {}: {}; {}", file,
          row.name, text_of(before), text_of(here[row.name]), row.reason, as_before(row.name, before));
  }
  if (promise(saved) != promise(now) || promise(now) == "portable") return;
  for (const Rule& rule : same_with_shards()) check_same(saved, now, rule.key, "with --shards, " + rule.advice, file);
}

}  // namespace

nlohmann::json parse_metadata(const std::string& text, const std::string& file) {
  nlohmann::json metadata = parse_json(text);
  check(metadata.is_object(), kResumeSite,
        "{}: its metadata is not a JSON object, expected a checkpoint; a weights file cannot be resumed", file);
  return metadata;
}

Continuation continuation(const nlohmann::json& saved, const nlohmann::json& now, const std::string& file,
                          bool change_bits) {
  const std::int64_t version = count(saved, "version", file);
  check(version <= kMetadataVersion, kResumeSite, "{}: metadata version {}, expected at most {}", file, version,
        kMetadataVersion);
  Continuation at{
      .step = count(saved, "step", file), .epoch = count(saved, "epoch", file), .offset = count(saved, "offset", file)};
  if (saved.contains("schedule_epochs")) at.schedule_epochs = field<double>(saved, "schedule_epochs", file);
  check_equal(saved, now, Resume::Never, file);
  check_states(saved, now, file);
  check_tokenizer(saved, now, file);
  check_defining_options(saved, now, file);
  check_samples(saved, now, file);
  const bool streams = metadata_entry(now, "train_samples", "this run").is_null();
  const auto size = field<std::int64_t>(now, streams ? "epoch_size" : "train_samples", "this run");
  if (at.offset > 0) check_equal(saved, now, Resume::SameInEpoch, file);
  check(at.offset <= size, kResumeSite, "{}: 'offset' is {}, expected at most the {} {} of an epoch", file, at.offset,
        size, streams ? "steps" : "samples");
  const nlohmann::json& options = options_of(now, "this run");
  if (options["global-batch"] == 0) {  // computed from --batch-size and the number of ranks, which may have changed
    const std::string advice =
        fmt::format("pass --global-batch {} to keep it, or another value to change it on purpose",
                    text_of(metadata_entry(saved, "global_batch", file)));
    check_same(saved, now, "global_batch", advice, file);
  }
  const bool promised = same_promise(saved, now, file, change_bits) && promise(now) == "portable";
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
