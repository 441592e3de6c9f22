#include "tools/supervisor/job_command.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/launch/host_option.h"
#include "lockstep/launch/hostfile.h"
#include "lockstep/train/options/flat_toml.h"

namespace lockstep::supervisor {
namespace {

// Open MPI 4.1's options that take one value, from `mpirun --help all`; with one dash or two.
const std::set<std::string_view>& options_with_value() {
  static const std::set<std::string_view> names{"am",
                                                "bind-to",
                                                "c",
                                                "cf",
                                                "cartofile",
                                                "cpu-list",
                                                "cpu-set",
                                                "cpus-per-proc",
                                                "cpus-per-rank",
                                                "debugger",
                                                "default-hostfile",
                                                "fwd-environment",
                                                "H",
                                                "host",
                                                "hostfile",
                                                "hnp",
                                                "launch-agent",
                                                "machinefile",
                                                "map-by",
                                                "max-restarts",
                                                "max-vm-size",
                                                "N",
                                                "n",
                                                "np",
                                                "npernode",
                                                "npersocket",
                                                "ompi-server",
                                                "output-filename",
                                                "path",
                                                "personality",
                                                "ppr",
                                                "prefix",
                                                "preload-files",
                                                "rank-by",
                                                "rankfile",
                                                "report-events",
                                                "report-pid",
                                                "report-uri",
                                                "rf",
                                                "slot-list",
                                                "stdin",
                                                "timeout",
                                                "tune",
                                                "wd",
                                                "wdir",
                                                "x",
                                                "xml-file",
                                                "xterm"};
  return names;
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view without_dashes(std::string_view word) {
  word.remove_prefix(std::min<std::size_t>(word.starts_with("--") ? 2 : 1, word.size()));
  return word;
}

}  // namespace

JobCommand::JobCommand(std::vector<std::string> words) : words_(std::move(words)) {
  check(!words_.empty(), "run", "no command, expected: lockstep run [OPTIONS] -- mpirun ... PROGRAM ...");
  constexpr std::array<std::string_view, 4> names{"mpirun", "mpiexec", "orterun", "mpirun.openmpi"};
  mpirun_ = std::find(names.begin(), names.end(), base_name(words_[0])) != names.end();
  if (mpirun_) {
    read_launcher_options();
    read_hosts();
  }
  read_config();
}

void JobCommand::read_launcher_options() {
  std::size_t at = 1;
  while (at < words_.size() && words_[at].starts_with('-')) {
    const std::string_view name = without_dashes(words_[at]);
    const std::size_t values = name == "mca" || name == "gmca" ? 2 : options_with_value().count(name);
    check(at + values < words_.size(), "run", "{} of mpirun has no value", words_[at]);
    check(name != "app" && name != "rf" && name != "rankfile", "run",
          "mpirun {} is not supervised, as places of ranks cannot follow the hosts; expected --hostfile or --host",
          words_[at]);
    if (values == 2) mca_.emplace_back(words_[at + 1], words_[at + 2]);
    if (name == "n" || name == "np" || name == "c") at_.ranks = at + 1;
    if (name == "hostfile" || name == "machinefile" || name == "default-hostfile") at_.hostfile = at + 1;
    if (name == "wd" || name == "wdir") folder_ = words_[at + 1];
    if (name == "wd" || name == "wdir" || name == "path" || name.starts_with("preload")) elsewhere_ = true;
    if (name == "H" || name == "host") {
      check(at_.host_list == 0, "run", "mpirun has --host twice, expected one list with commas");
      at_.host_list = at + 1;
    }
    at += 1 + values;
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

void JobCommand::read_hosts() {
  check(at_.hostfile == 0 || at_.host_list == 0, "run", "mpirun has --hostfile and --host, expected one of them");
  if (at_.host_list > 0) hosts_ = launch::parse_host_list(words_[at_.host_list], "--host");
  if (at_.hostfile == 0) return;
  const std::string& path = words_[at_.hostfile];
  std::ifstream file(path);
  std::error_code error;  // a directory can be opened, and then not be read
  check(file.is_open() && !std::filesystem::is_directory(path, error), "run", "hostfile {} cannot be read", path);
  hostfile_text_.assign(std::istreambuf_iterator<char>(file), {});
  hosts_ = launch::parse_hostfile(hostfile_text_, path);
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

std::optional<std::string> JobCommand::mca(std::string_view name) const {
  for (const auto& [key, value] : mca_) {
    if (key == name) return value;
  }
  const char* set = std::getenv(("OMPI_MCA_" + std::string(name)).c_str());
  return set == nullptr ? std::nullopt : std::optional<std::string>(set);
}

bool JobCommand::starts_by_ssh() const {
  if (!mpirun_) return false;
  if (const auto chosen = mca("plm")) return chosen->find("rsh") != chosen->npos;
  return std::getenv("SLURM_JOB_ID") == nullptr;
}

std::optional<JobCommand::Obstacle> JobCommand::obstacle() const {
  const std::string& program = words_[at_.program];
  const bool here = std::ranges::all_of(hosts_.hosts, [](const auto& h) { return launch::is_this_machine(h.name); });
  const bool scheduled = mpirun_ && hosts_.hosts.empty() && !starts_by_ssh();
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
      const std::string text = launch::hostfile_without(hostfile_text_, change.lost);
      io::replace_file(change.hostfile, std::as_bytes(std::span(text)));  // not through what lies there
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
