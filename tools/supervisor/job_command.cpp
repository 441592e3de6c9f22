#include "tools/supervisor/job_command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/launch/machinefile.h"
#include "lockstep/launch/mpirun_words.h"
#include "lockstep/train/options/flat_toml.h"
#include "tools/supervisor/launcher_options.h"

namespace lockstep::supervisor {
namespace {

using Meaning = LauncherOption::Meaning;
using launch::MpirunKind;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> joined_words(std::vector<std::string> first, const std::string& more) {
  for (std::string& word : words_of(more)) first.push_back(std::move(word));
  return first;
}

std::optional<std::string> variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

JobCommand::JobCommand(std::vector<std::string> words, MpirunKind kind) : words_(std::move(words)), kind_(kind) {
  check(!words_.empty(), "run", "no command, expected: lockstep run [OPTIONS] -- mpirun ... PROGRAM ...");
  if (is_mpirun()) {
    read_launcher_options();
    read_hosts();
  }
  read_config();
}

void JobCommand::read_launcher_options() {
  std::size_t at = 1;
  while (at < words_.size() && words_[at].starts_with('-')) {
    const LauncherOption option = launcher_option(kind_, words_[at]);
    check(at + option.values < words_.size(), "run", "{} of mpirun has no value", words_[at]);
    check(option.meaning != Meaning::Places, "run",
          "mpirun {} is not supervised, as places of ranks cannot follow the hosts; expected --hostfile or --host",
          words_[at]);
    take_option(option, at);
    at += 1 + option.values;
  }
  at_.program = at;
  check(at_.program < words_.size(), "run", "no program in the mpirun command");
  check(std::find(words_.begin() + static_cast<std::ptrdiff_t>(at_.program), words_.end(), ":") == words_.end(), "run",
        "several programs (':') in one mpirun command are not supervised, expected one");
  if (at_.ranks == 0) return;
  const std::string& text = words_[at_.ranks];
  std::int64_t ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  check(error == std::errc{} && end == text.data() + text.size() && ranks > 0, "run",
        "mpirun -n '{}', expected a number of ranks", text);
  ranks_ = ranks;
}

void JobCommand::take_option(const LauncherOption& option, std::size_t at) {
  switch (option.meaning) {
    case Meaning::Ranks:
      at_.ranks = at + 1;
      break;
    case Meaning::Hostfile:
      at_.hostfile = at + 1;
      break;
    case Meaning::HostList:
      check(at_.host_list == 0, "run", "mpirun has {} twice, expected one list with commas", words_[at]);
      at_.host_list = at + 1;
      break;
    case Meaning::Folder:
      folder_ = words_[at + 1];
      elsewhere_ = true;
      break;
    case Meaning::Elsewhere:
      elsewhere_ = true;
      break;
    case Meaning::Setting:
      settings_.emplace_back(option.values == 2 ? words_[at + 1] : std::string(option.name),
                             words_[at + option.values]);
      break;
    case Meaning::Other:
    case Meaning::Places:
      break;
  }
}

void JobCommand::read_hosts() {
  check(at_.hostfile == 0 || at_.host_list == 0, "run", "mpirun has --hostfile and --host, expected one of them");
  if (at_.host_list > 0) hosts_ = launch::parse_host_list(words_[at_.host_list], "--host");
  if (at_.hostfile == 0) return;
  const std::string& path = words_[at_.hostfile];
  std::ifstream file(path);
  std::error_code error;  // a directory can be opened, and then not be read
  check(file.is_open() && !std::filesystem::is_directory(path, error), "run", "hostfile {} cannot be read", path);
  hostfile_text_.assign(std::istreambuf_iterator<char>(file), {});
  hosts_ = kind_ == MpirunKind::Hydra ? launch::parse_machinefile(hostfile_text_, path)
                                      : launch::parse_hostfile(hostfile_text_, path);
}

// A file that is not there, or that the program would refuse, is for the program to complain about.
void JobCommand::read_config() {
  const auto named = command_line_option("config");
  if (!named) return;
  const std::string path = path_of_program(*named);
  try {
    std::error_code error;
    check(std::filesystem::is_regular_file(path, error), "run", "{} is not a regular file", path);
    std::ifstream file(path);
    check(file.is_open(), "run", "{}", std::strerror(errno));
    for (const auto& entry : train::parse_flat_toml(std::string(std::istreambuf_iterator<char>(file), {}))) {
      if (entry.values.size() == 1) config_[entry.key] = entry.values[0].text;
    }
  } catch (const std::exception& error) {
    config_problem_ = fmt::format("--config {} cannot be read: {}", path, error.what());
  }
}

std::string JobCommand::path_of_program(const std::string& path) const {
  return (std::filesystem::path(folder_) / path).string();
}

std::optional<std::string> JobCommand::program_option(std::string_view name) const {
  if (auto value = command_line_option(name)) return value;
  const auto found = config_.find(std::string(name));
  return found == config_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> JobCommand::command_line_option(std::string_view name) const {
  const std::string option = "--" + std::string(name), equals = option + "=";
  std::optional<std::string> value;
  for (std::size_t at = at_.program; at < words_.size(); ++at) {
    if (words_[at].starts_with(equals)) value = words_[at].substr(equals.size());
    if (words_[at] == option && at + 1 < words_.size()) value = words_[at + 1];
  }
  return value;
}

std::optional<std::string> JobCommand::setting(std::string_view name) const {
  for (const auto& [key, value] : settings_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<std::string> JobCommand::mca(std::string_view name) const {
  const std::string in_4(name), in_5 = launch::name_in_5(in_4);
  for (const std::string& each : {in_4, in_5}) {
    if (auto said = setting(each)) return said;
  }
  return launch::parameter_in_environment(in_4, variable);
}

bool JobCommand::starts_by_ssh() const {
  std::optional<std::string> chosen;
  if (kind_ == MpirunKind::OpenMpi) chosen = mca("plm");
  if (kind_ == MpirunKind::Hydra) {
    for (const char* name : {"launcher", "bootstrap"}) {
      if (!chosen) chosen = setting(name);
    }
    for (const char* name : {"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "I_MPI_HYDRA_BOOTSTRAP"}) {
      if (!chosen) chosen = variable(name);
    }
  }
  if (chosen) return chosen->find("rsh") != chosen->npos || chosen->find("ssh") != chosen->npos;
  return is_mpirun() && !variable("SLURM_JOB_ID");
}

std::vector<std::string> JobCommand::agent() const {
  std::optional<std::string> program, arguments;
  if (kind_ == MpirunKind::Hydra) {
    program = setting("launcher-exec");
    if (!program) program = setting("bootstrap-exec");
    if (!program) program = variable("HYDRA_LAUNCHER_EXEC");
    arguments = variable("HYDRA_LAUNCHER_EXTRA_ARGS");
    return joined_words({program.value_or("ssh")}, arguments.value_or(""));
  }
  program = mca("plm_rsh_agent");
  arguments = mca("plm_rsh_args");
  const std::string agents = program.value_or("ssh");
  return joined_words(words_of(agents.substr(0, agents.find(':'))), arguments.value_or(""));
}

std::optional<JobCommand::Obstacle> JobCommand::obstacle() const {
  const std::string& program = words_[at_.program];
  const bool here = std::ranges::all_of(hosts_.hosts, [own = launch::OwnNames::of_this_machine()](const auto& h) {
    return is_this_machine(h.name, own);
  });
  const bool scheduled = is_mpirun() && hosts_.hosts.empty() && !starts_by_ssh();
  if (!here || scheduled || elsewhere_ || program.find('/') == program.npos) return std::nullopt;
  struct stat found {};
  if (::stat(program.c_str(), &found) != 0) {
    const int code = errno;
    return Obstacle{code == ENOENT || code == ENOTDIR ? 127 : 126, fmt::format("{}: {}", program, std::strerror(code))};
  }
  if (S_ISREG(found.st_mode) && ::access(program.c_str(), X_OK) == 0) return std::nullopt;
  return Obstacle{126, program + " is no executable file"};
}

std::vector<std::string> JobCommand::words(const Change& change) const {
  std::vector<std::string> words = words_;
  if (!change.lost.empty()) {
    if (at_.hostfile > 0) {
      const std::string text = kind_ == MpirunKind::Hydra ? launch::machinefile_without(hostfile_text_, change.lost)
                                                          : launch::hostfile_without(hostfile_text_, change.lost);
      io::replace_file(change.hostfile, text, "run");  // not through what lies there
      words[at_.hostfile] = change.hostfile;
    } else {
      words[at_.host_list] = launch::host_list_without(words[at_.host_list], change.lost);
    }
    if (at_.ranks > 0 && change.ranks) words[at_.ranks] = std::to_string(*change.ranks);
  }
  if (change.resume_auto && command_line_option("resume")) {
    for (std::size_t at = at_.program; at < words.size(); ++at) {
      if (words[at] == "--resume" && at + 1 < words.size()) words[at + 1] = "auto";
      if (words[at].starts_with("--resume=")) words[at] = "--resume=auto";
    }
  } else if (change.resume_auto || !program_option("resume")) {
    words.insert(words.end(), {"--resume", "auto"});
  }
  return words;
}

}  // namespace lockstep::supervisor
