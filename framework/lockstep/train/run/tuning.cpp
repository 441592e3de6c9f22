#include "lockstep/train/run/tuning.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/optim/groups.h"
#include "lockstep/plan/last_layers.h"
#include "lockstep/train/options/near_names.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kTracedSamples = 2;

std::vector<NamedParameter> weights_of(const std::vector<NamedParameter>& all) {
  std::vector<NamedParameter> weights;
  std::ranges::copy_if(all, std::back_inserter(weights),
                       [](const NamedParameter& p) { return p.parameter->role != Role::Buffer; });
  return weights;
}

std::string parts_of(const std::vector<NamedParameter>& parameters) {
  std::vector<std::string> parts;
  for (const NamedParameter& p : parameters) {
    const std::size_t dot = p.name.find('.');
    std::string part = dot == std::string::npos ? p.name : p.name.substr(0, dot) + ".*";
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  }
  return joined(parts, ", ");
}

[[noreturn]] void fail_unmatched(std::string_view option, const std::string& pattern, const nn::Module& module) {
  const std::vector<NamedParameter> weights = weights_of(module.named_parameters());
  for (const NamedTable& table : nn::named_tables(module))
    check(
        !optim::matches(pattern, table.name), kOptionsSite,
        "--{}: the pattern '{}' matches '{}', a sparse table, expected other parameters: the rows that a step uses are "
        "always trained, by the options for tables, such as --table-rate-scale; those others are {}",
        option, pattern, table.name, parts_of(weights));
  std::vector<std::string> names;
  for (const NamedParameter& p : weights) names.push_back(p.name);
  for (const nn::NamedModule& m : module.named_modules()) {
    const auto is_in = [&](const NamedParameter& p) { return p.name.starts_with(m.path + "."); };
    if (std::ranges::none_of(weights, is_in)) continue;
    if (m.path == pattern) fail(kOptionsSite, "--{} names '{}', a module, expected '{}.*'", option, pattern, pattern);
    names.push_back(m.path + ".*");
  }
  const std::string near = nearest_name(pattern, names);
  fail(kOptionsSite, "--{}: the pattern '{}' matches no parameter{}; the model has {}", option, pattern,
       near.empty() ? "" : formatted(", did you mean '{}'?", near), parts_of(weights));
}

void freeze(const nn::Module& module, const std::vector<std::string>& patterns) {
  const std::vector<NamedParameter> weights = weights_of(module.named_parameters());
  for (const std::string& pattern : patterns) {
    bool matched = false;
    for (const NamedParameter& p : weights) {
      if (!optim::matches(pattern, p.name)) continue;
      p.parameter->trainable = false;
      matched = true;
    }
    if (!matched) fail_unmatched("freeze", pattern, module);
  }
  std::set<const Parameter*> all, frozen;
  for (const NamedParameter& p : weights) {
    all.insert(p.parameter);
    if (!p.parameter->trainable) frozen.insert(p.parameter);
  }
  check(frozen.size() < all.size(), kOptionsSite, "--freeze {} matches all parameters, expected some to be trained",
        joined(patterns, ","));
  int norms = 0;
  for (const nn::NamedModule& m : module.named_modules()) {
    const std::vector<NamedParameter> own = m.module->named_parameters(), trained = weights_of(own);
    const bool whole =
        !trained.empty() && std::ranges::none_of(trained, [](const auto& p) { return p.parameter->trainable; });
    if (!whole) continue;
    m.module->freeze_statistics(true);
    norms +=
        static_cast<int>(std::ranges::count_if(own, [&](const NamedParameter& p) { return p.name == "running_var"; }));
  }
  log()->info("frozen: {} of {} parameters{}", frozen.size(), all.size(),
              norms == 0 ? "" : formatted(", and the statistics of {} batch norms", norms));
}

// Checks that each pattern of an option matches parameters that are trained, and says how many.
void check_groups(const nn::Module& module, std::string_view option, const std::vector<optim::ParameterGroup>& groups) {
  const std::vector<NamedParameter> weights = weights_of(module.named_parameters());
  for (const optim::ParameterGroup& group : groups) {
    std::int64_t matched = 0, trained = 0;
    for (const NamedParameter& p : weights) {
      if (!optim::matches(group.pattern, p.name)) continue;
      ++matched;
      trained += p.parameter->trainable ? 1 : 0;
    }
    if (matched == 0) fail_unmatched(option, group.pattern, module);
    check(trained > 0, kOptionsSite, "--{}: all parameters that '{}' matches are frozen, expected trained ones", option,
          group.pattern);
    const std::string setting =
        group.rate_scale ? formatted("rate times {:.6g}", *group.rate_scale) : "no weight decay";
    log()->info("{}: {} parameters of {}", setting, trained, group.pattern);
  }
}

std::vector<std::string> head_of(const RunFacts& facts, const nn::Module& module, const plan::ModelFunction& model) {
  std::map<std::string, Type> inputs;
  for (const data::Field& f : facts.data.fields()) inputs[f.name] = {f.shape.batched(kTracedSamples), f.dtype};
  const std::vector<NamedParameter> parameters = module.named_parameters();
  std::vector<std::string> head = plan::last_layers(parameters, model, inputs);
  check(!head.empty() && head.size() < parameters.size(), kOptionsSite,
        "--replace-head: {} of the model's {} tensors are those of its last layer, expected some and not all",
        head.size(), parameters.size());
  return head;
}

}  // namespace

void apply_tuning(const Options& options, const nn::Module& module) {
  if (const std::vector<std::string> patterns = freeze_patterns(options.tuning); !patterns.empty())
    freeze(module, patterns);
  check_groups(module, "lr-scale", rate_groups(options.tuning));
  check_groups(module, "no-decay", decay_groups(options.tuning));
}

std::vector<std::string> head_to_replace(const RunFacts& facts, const nn::Module& module,
                                         const plan::ModelFunction& model) {
  std::vector<std::string> head;
  comm::collectively(facts.comm, [&] {
    if (facts.options.tuning.replace_head) head = head_of(facts, module, model);
  });
  return head;
}

}  // namespace lockstep::train
