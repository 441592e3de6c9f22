#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "tools/commands.h"
#include "tools/run_difference.h"

namespace lockstep::tools {
namespace {

constexpr int kDifferent = 1, kNothing = 2;
constexpr std::size_t kShown = 5;

std::string list_of(std::span<const std::string> names) {
  const auto shown = names.first(std::min(names.size(), kShown));
  const std::string rest = names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "";
  return printable(fmt::format("{}{}", fmt::join(shown, ", "), rest));
}

std::string apart(const ElementDifference& element) {
  return element.steps ? fmt::format("{} ulp apart", *element.steps) : "not numbers";
}

void print_tensor(const TensorDifference& tensor) {
  if (!tensor.what.empty()) {
    fmt::print("  {}: {}\n", printable(tensor.name), tensor.what);
    return;
  }
  const ElementDifference& first = tensor.first;
  fmt::print("  {}[{}]: {} and {}, {}; {} of {} elements differ, by at most {:.3g}\n", printable(tensor.name),
             fmt::join(first.index, ", "), first.left, first.right, apart(first), tensor.elements, tensor.of,
             tensor.largest);
}

void print_saved(const CheckpointDifference& saved) {
  if (saved.step != saved.right_step) fmt::print("the files are of steps {} and {}\n", saved.step, saved.right_step);
  fmt::print("checkpoints of step {}: {} of {} tensors differ\n", saved.step, saved.different.size(), saved.tensors);
  for (std::size_t i = 0; i < std::min(saved.different.size(), kShown); ++i) print_tensor(saved.different[i]);
}

void print(const RunDifference& d) {
  if (!d.compared()) {
    fmt::print("nothing to compare\n");
  } else if (d.equal()) {
    fmt::print("equal: {} steps by their hashes, {} checkpoints bit by bit\n", d.hashed_steps, d.checkpoints);
  } else {
    fmt::print("differ at step {}{}\n", d.first_step(),
               d.last_equal ? fmt::format(", equal at step {}", *d.last_equal) : ", the first that could be compared");
    if (d.hashes)
      fmt::print("hashes of step {}: {} of {} tensors differ: {}\n", d.hashes->step, d.hashes->different.size(),
                 d.hashes->tensors, list_of(d.hashes->different));
    if (d.saved) print_saved(*d.saved);
    fmt::print("probable causes:{}\n", d.causes.empty() ? " none is recorded" : "");
    for (const std::string& line : d.causes) fmt::print("  {}\n", printable(line));
  }
  for (const std::string& line : d.unknown) fmt::print("not known: {}\n", printable(line));
}

nlohmann::ordered_json json_of(const TensorDifference& t) {
  nlohmann::ordered_json json = {{"name", t.name}};
  if (!t.what.empty()) {
    json["what"] = t.what;
    return json;
  }
  json.update({{"elements", t.elements}, {"of", t.of}, {"largest", t.largest}, {"index", t.first.index}});
  json.update({{"left", t.first.left}, {"right", t.first.right}});
  json["ulp"] = t.first.steps ? nlohmann::ordered_json(*t.first.steps) : nlohmann::ordered_json();
  return json;
}

nlohmann::ordered_json json_of(const RunDifference& d) {
  nlohmann::ordered_json json = {
      {"equal", d.compared() && d.equal()}, {"hashed_steps", d.hashed_steps}, {"checkpoints", d.checkpoints}};
  if (d.last_equal) json["last_equal_step"] = *d.last_equal;
  if (!d.equal()) json["first_step"] = d.first_step();
  if (d.hashes) json["hashes"] = {{"step", d.hashes->step}, {"tensors", d.hashes->different}};
  if (d.saved) {
    json["checkpoint"] = {{"step", d.saved->step}, {"tensors", nlohmann::ordered_json::array()}};
    for (const TensorDifference& t : d.saved->different) json["checkpoint"]["tensors"].push_back(json_of(t));
  }
  json["causes"] = d.causes;
  json["unknown"] = d.unknown;
  return json;
}

// Equal ends the program as usual.
void compare(const std::string& left, const std::string& right, bool as_json) {
  RunDifference found;
  try {
    found = difference(RunFiles(left), RunFiles(right));
  } catch (const Error& error) {
    fmt::print(stderr, "lockstep: {}\n", printable(error.what()));
    throw CLI::RuntimeError(kNothing);
  }
  if (as_json) {
    fmt::print("{}\n", json_of(found).dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print(found);
  }
  if (!found.compared()) throw CLI::RuntimeError(kNothing);
  if (!found.equal()) throw CLI::RuntimeError(kDifferent);
}

}  // namespace

void add_compare_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "compare",
      "Find the first step, tensor and element at which two runs differ: steps and tensors by their hash logs "
      "(--hash-every), elements by their checkpoints. Exit 0: equal, 1: different, 2: nothing to compare");
  struct Arguments {
    std::string left, right;
    bool as_json = false;
  };
  auto given = std::make_shared<Arguments>();
  command->add_option("run1", given->left, "Output folder of a run, or a checkpoint file")->required();
  command->add_option("run2", given->right, "The other")->required();
  command->add_flag("--json", given->as_json, "One JSON object, with all tensors, instead of text");
  command->callback([given] { compare(given->left, given->right, given->as_json); });
}

}  // namespace lockstep::tools
