#include "tools/launcher/mpirun_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lockstep/core/error.h"

namespace lockstep::launcher {
namespace {

using Words = std::vector<std::string>;

void add(Words& words, std::initializer_list<std::string> more) { words.insert(words.end(), more); }

// Whether the user's words for mpirun or the environment settle this: an MCA parameter's name, or an option.
bool is_settled(const MpirunLine& line, const ReadVariable& variable, const std::string& parameter,
                const std::string& option = "") {
  const auto names = [&](const std::string& word) {
    return word == parameter || (!option.empty() && (word == "--" + option || word == "-" + option));
  };
  return variable("OMPI_MCA_" + parameter) || std::any_of(line.extra.begin(), line.extra.end(), names);
}

void add_agents(Words& words, const MpirunLine& line) {
  add(words, {"--mca", "plm", "rsh", "--mca", "plm_rsh_agent", line.own_name + " launch-agent"});
  // Options for ssh that the environment or a file of Open MPI's has would come before the node's name.
  add(words, {"--mca", "plm_rsh_args", ""});
  // Each daemon is started by mpirun itself, and stays the child of the launcher that started it.
  add(words, {"--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "orte_leave_session_attached", "1"});
  add(words, {"--mca", "plm_rsh_num_concurrent", std::to_string(std::max(128, line.nodes))});
  add(words, {"--mca", "ras", "^slurm"});  // the nodes are those that came, whatever Slurm knows
}

void add_network(Words& words, const MpirunLine& line, const ReadVariable& variable) {
  if (line.network.empty()) return;
  for (const std::string layer : {"oob_tcp_if", "btl_tcp_if"}) {
    const bool chosen =
        is_settled(line, variable, layer + "_include") || is_settled(line, variable, layer + "_exclude");
    const bool by_lockstep = layer == "btl_tcp_if" && variable("LOCKSTEP_INTERFACE");
    if (!chosen && !by_lockstep) add(words, {"--mca", layer + "_include", line.network});
  }
}

// The user's words; mpirun takes ssh's options once, so that the port stands behind those that the user has.
Words with_ssh_port(const MpirunLine& line) {
  Words extra = line.extra;
  if (line.ssh_port == 0) return extra;
  const std::string port = fmt::format("-p {}", line.ssh_port);
  const auto found = std::find(extra.begin(), extra.end(), "plm_rsh_args");
  if (found != extra.end() && found + 1 != extra.end()) {
    *(found + 1) += " " + port;
  } else {
    add(extra, {"--mca", "plm_rsh_args", port});
  }
  return extra;
}

}  // namespace

Words mpirun_words(const MpirunLine& line, const ReadVariable& variable) {
  Words words{"mpirun"};
  if (line.root) words.push_back("--allow-run-as-root");
  if (line.through_agents) add_agents(words, line);
  add_network(words, line, variable);
  if (!line.hosts.empty()) add(words, {"--host", line.hosts});
  if (!line.hostfile.empty()) add(words, {"--hostfile", line.hostfile});
  if (line.ranks > 0) add(words, {"-n", std::to_string(line.ranks)});
  if (!is_settled(line, variable, "hwloc_base_binding_policy", "bind-to")) add(words, {"--bind-to", "none"});
  if (!is_settled(line, variable, "rmaps_base_mapping_policy", "map-by")) add(words, {"--map-by", "slot"});
  if (line.tag_output) words.push_back("--tag-output");
  for (const auto& [name, value] : line.variables) add(words, {"-x", name + "=" + value});
  const Words extra = with_ssh_port(line);
  words.insert(words.end(), extra.begin(), extra.end());
  add(words, {line.own_name, "launch-rank"});
  words.insert(words.end(), line.program.begin(), line.program.end());
  return words;
}

Words split_words(const std::string& text) {
  Words words;
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
  check(quote == '\0', "launch", "--mpi-args has an open quote: {}", text);
  return words;
}

}  // namespace lockstep::launcher
