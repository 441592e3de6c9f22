#include "tools/use_weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/core/error.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/options/options_table.h"
#include "lockstep/train/report/json_text.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightsSite = "weights";

// Options of the framework that say what a model computes or which samples it sees, further to those that shape the
// model and those of some data sets. All others are about training.
constexpr std::array<std::string_view, 7> kNeeded{"batch-size", "seed",   "precision", "conv-math",
                                                  "bits",       "unused", "limit-eval"};

// Sets of fields have inputs, and programs offer options for the other kind only if they have such sets.
bool is_needed(const train::OptionRow& row, bool fields) {
  if (row.data == train::ForData::FieldsAndImageSets || row.data == train::ForData::Labels) return true;
  if (row.data != train::ForData::Any) return (row.data == train::ForData::Fields) == fields;
  return row.shapes_model || std::ranges::find(kNeeded, row.name) != kNeeded.end();
}

bool is_given(const std::vector<std::string>& words, const std::string& option) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return word == "--" + option || word.starts_with("--" + option + "="); });
}

// "--name=value"; empty: the value is that of an option that was not given.
std::string spelled(const std::string& name, const nlohmann::json& value) {
  if (value.is_string())
    return value.get_ref<const std::string&>().empty() ? "" : fmt::format("--{}={}", name, value.get<std::string>());
  if (value.is_array()) {
    std::vector<std::string> numbers;
    for (const nlohmann::json& number : value) numbers.push_back(number.dump());
    return numbers.empty() ? "" : fmt::format("--{}={}", name, fmt::join(numbers, ","));
  }
  return fmt::format("--{}={}", name, value.dump());
}

// Files that the user names are evaluated whole: they are not those of which the run has trained a part.
bool has_new_samples(const nlohmann::json& options, const std::vector<std::string>& user) {
  const bool arrays = options.value("dataset", nlohmann::json()) == "arrays";
  return is_given(user, "files") || (arrays && is_given(user, "inputs"));
}

std::string words_of_use(const UseRequest& request) {
  if (request.use == UseRequest::Use::Evaluate) return "--evaluate-only";
  return fmt::format("--{}={}", request.use == UseRequest::Use::Predict ? "predict" : "onnx", request.result.string());
}

// The folder of the run that wrote a file; empty: the file lies elsewhere, or nothing can be written there.
fs::path run_folder(const fs::path& file) {
  const fs::path checkpoints = fs::absolute(file).parent_path();
  const fs::path run = checkpoints.parent_path();
  const bool is_run = checkpoints.filename() == "checkpoints" && ::access(run.c_str(), W_OK) == 0;
  return is_run ? run : fs::path();
}

fs::path find_program(const std::string& name) {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  fs::path path = folder / name;
  check(fs::exists(path), "weights",
        "the program {}, which wrote the weights, is not in {}; expected the program there, or --program PATH", name,
        folder.string());
  return path;
}

[[noreturn]] void become(const fs::path& program, std::vector<std::string> words) {
  words.insert(words.begin(), program.string());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  fail("program", "{}: {}; expected a program that can be started", program.string(), std::strerror(errno));
}

}  // namespace

std::string program_of(const nlohmann::json& metadata, const std::string& file) {
  const auto program = metadata.find("program");
  check(
      metadata.is_object() && program != metadata.end() && program->is_string(), kWeightsSite,
      "{}: it has no record of the program that wrote it, expected a checkpoint; --program PATH names the program, and "
      "its options are then all to be given",
      file);
  auto name = program->get<std::string>();
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.+";
  check(!name.empty() && name.front() != '.' && name.find_first_not_of(kLetters) == name.npos, kWeightsSite,
        "{}: '{}' is its program, expected the name of one; --program PATH names another", file, name);
  return name;
}

std::vector<std::string> arguments_for(const nlohmann::json& metadata, const UseRequest& request) {
  std::vector<std::string> words;
  const nlohmann::json options =
      metadata.is_object() ? metadata.value("options", nlohmann::json::object()) : nlohmann::json::object();
  check(options.is_object(), kWeightsSite, "{}: 'options' in its metadata cannot be used: expected an object",
        request.weights.string());
  train::Options defaults;
  std::map<std::string, bool> needed;  // of the framework's options; others are the program's own
  const bool fields = options.value("inputs", nlohmann::json("")) != nlohmann::json("");
  const nlohmann::json usual = train::to_json(defaults);
  for (const train::OptionRow& row : train::option_rows(defaults)) {
    // Options of some data sets, which programs without these sets do not have, have their defaults there.
    const bool is_usual =
        row.data != train::ForData::Any && options.value(row.name, nlohmann::json()) == usual[row.name];
    needed[row.name] = is_needed(row, fields) && !is_usual;
  }
  const bool all = request.use == UseRequest::Use::Evaluate && has_new_samples(options, request.user) &&
                   !is_given(request.user, "eval-files");
  if (all) needed["eval-files"] = needed["eval-fraction"] = false;
  if (all || request.use != UseRequest::Use::Evaluate) needed["limit-eval"] = false;
  for (const auto& [name, value] : options.items()) {
    const auto row = needed.find(name);
    if ((row != needed.end() && !row->second) || value.is_null() || value.is_object()) continue;
    if (name == "batch-size" && value == 0) continue;  // --global-batch said it
    if (const std::string word = spelled(name, value); !word.empty()) words.push_back(word);
  }
  if (all && !is_given(request.user, "eval-fraction")) words.emplace_back("--eval-fraction=1");
  words.push_back(fmt::format("--weights={}", request.weights.string()));
  words.push_back(words_of_use(request));
  if (!request.output.empty()) words.push_back(fmt::format("--output={}", request.output.string()));
  words.insert(words.end(), request.user.begin(), request.user.end());
  return words;
}

void start_program(const checkpoint::WeightsSource& source, const std::string& program, UseRequest request) {
  const auto metadata = train::parse_json(source.metadata);
  const fs::path path = program.empty() ? find_program(program_of(metadata, source.file.string())) : fs::path(program);
  request.weights = source.file;
  request.output = run_folder(source.file);
  become(path, arguments_for(metadata, request));
}

}  // namespace lockstep::tools
