#include "lockstep/launch/mpirun_words.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "lockstep/core/error.h"

namespace lockstep::launch {
namespace {

constexpr const char* kSshArguments = "plm_rsh_args";

}  // namespace

std::string name_in_5(const std::string& parameter) {
  using Names = std::pair<std::string_view, std::string_view>;
  for (const auto& [old, now] :
       std::array{Names{"plm_rsh_", "plm_ssh_"}, Names{"orte_", "prte_"}, Names{"oob_tcp_if_", "prte_if_"},
                  Names{"rmaps_base_", "rmaps_default_"}, Names{"hwloc_base_", "hwloc_default_"}})
    if (parameter.starts_with(old)) return std::string(now) + parameter.substr(old.size());
  return parameter;
}

std::optional<std::string> parameter_in_environment(const std::string& parameter, const ReadVariable& variable) {
  if (auto found = variable("OMPI_MCA_" + parameter)) return found;
  return variable("PRTE_MCA_" + name_in_5(parameter));
}

MpirunWords::MpirunWords(std::vector<std::string> own, ReadVariable variable)
    : own_(std::move(own)), variable_(std::move(variable)) {}

void MpirunWords::add(std::initializer_list<std::string> words) { words_.insert(words_.end(), words); }

std::optional<std::string> MpirunWords::in_environment(const std::string& parameter) const {
  return variable_ ? parameter_in_environment(parameter, variable_) : std::nullopt;
}

bool MpirunWords::in_own_words(const std::string& parameter, const std::string& option) const {
  const auto sets = [&, in_5 = name_in_5(parameter)](const std::string& word) {
    return word == parameter || word == in_5 || (!option.empty() && (word == option || word == option.substr(1)));
  };
  return std::ranges::any_of(own_, sets);
}

void MpirunWords::add_parameter(const std::string& name, const std::string& value) {
  if (!in_own_words(name)) add({"--mca", name, in_environment(name).value_or(value)});
}

void MpirunWords::add_option(const std::string& option, const std::string& parameter, const std::string& value) {
  if (!in_own_words(parameter, option)) add({option, in_environment(parameter).value_or(value)});
}

void MpirunWords::add_mapping() { add_option("--map-by", "rmaps_base_mapping_policy", "slot"); }

void MpirunWords::add_no_binding() { add_option("--bind-to", "hwloc_base_binding_policy", "none"); }

void MpirunWords::add_network(const std::string& layer, const std::string& network) {
  const std::string exclude = layer + "_if_exclude";
  if (in_own_words(exclude)) return;
  if (const auto excluded = in_environment(exclude)) return add({"--mca", exclude, *excluded});
  add_parameter(layer + "_if_include", network);
}

void MpirunWords::add_ports(const PortPlan& plan) {
  for (const auto& [name, value] : port_parameters(plan)) add_parameter(name, value);
}

void MpirunWords::add_ssh_arguments(const std::string& arguments) {
  const auto found = std::ranges::find_if(
      own_, [](const std::string& word) { return word == kSshArguments || word == name_in_5(kSshArguments); });
  if (found != own_.end() && found + 1 != own_.end()) {
    std::string& all = *(found + 1);
    all += ' ';
    all += arguments;
    return;
  }
  std::string all = in_environment(kSshArguments).value_or("");
  if (!all.empty()) all += ' ';
  all += arguments;
  add({"--mca", kSshArguments, all});
}

std::vector<std::string> MpirunWords::with(const std::vector<std::string>& program) const {
  std::vector<std::string> command = words_;
  command.insert(command.end(), own_.begin(), own_.end());
  command.insert(command.end(), program.begin(), program.end());
  return command;
}

std::vector<std::pair<std::string, std::string>> keepalive_parameters() {
  return {{"oob_tcp_keepalive_time", "5"}, {"oob_tcp_keepalive_intvl", "1"}, {"oob_tcp_keepalive_probes", "6"}};
}

std::vector<std::string> split_words(const std::string& text, const std::string& option) {
  std::vector<std::string> words;
  char quote = '\0';
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote == '\0' && std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      words.back() += text[++i];
    } else {
      words.back() += c;
    }
  }
  check(quote == '\0', "launch", "{} has an open quote: {}", option, text);
  return words;
}

}  // namespace lockstep::launch
