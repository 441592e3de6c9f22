#include "tools/launcher/rank.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/host/network.h"
#include "lockstep/host/threads.h"
#include "tools/launcher/hydra_line.h"

namespace lockstep::launcher {
namespace {

constexpr const char *kNode = "LOCKSTEP_LAUNCH_NODE", *kDirectory = "LOCKSTEP_LAUNCH_DIRECTORY",
                     *kBin = "LOCKSTEP_LAUNCH_BIN", *kWords = "LOCKSTEP_LAUNCH_WORDS",
                     *kAgent = "LOCKSTEP_LAUNCH_AGENT", *kWrapper = "LOCKSTEP_LAUNCH_WRAPPER";

std::string value(const Variables& variables, const std::string& name, const std::string& otherwise) {
  const auto found = variables.find(name);
  return found == variables.end() || found->second.empty() ? otherwise : found->second;
}

int number(const std::string& text) {
  int value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// The number of the daemon on this node, which mpirun counts from 0 (itself): "12.3;tcp://..." is 3, and that of Open
// MPI 5 has "prterun-HOST-PID@0.3" there.
std::string daemon_number(const Variables& variables) {
  constexpr std::string_view kServer = "PMIX_SERVER_URI";  // with the number of a version behind it
  const auto server = variables.lower_bound(std::string(kServer));
  const bool found = server != variables.end() && server->first.starts_with(kServer);
  const std::string uri = value(variables, "OMPI_MCA_orte_local_daemon_uri", found ? server->second : "");
  const std::size_t end = uri.find(';'), dot = uri.rfind('.', end);
  return dot == uri.npos || end == uri.npos || end < dot ? "0" : uri.substr(dot + 1, end - dot - 1);
}

std::string without_entry(const std::string& path, const std::string& entry) {
  const std::string framed = fmt::format(":{}:", path);
  const std::size_t at = framed.find(fmt::format(":{}:", entry));
  if (entry.empty() || at == framed.npos) return path;
  const std::string left = framed.substr(0, at) + framed.substr(at + 1 + entry.size());
  return left.size() < 2 ? "" : left.substr(1, left.size() - 2);
}

int say(int status, const std::string& rank, const std::string& text) {
  fmt::print(stderr, "lockstep launch: {}: rank {}: {}\n", host::host_name(), rank, printable(text));
  return status;
}

}  // namespace

std::string own_folder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path().string(); }
std::string own_name() { return std::filesystem::read_symlink("/proc/self/exe").filename().string(); }

Variables node_variables(int node, const std::vector<std::string>& words, const std::string& wrapper) {
  const char* path = std::getenv("PATH");
  Variables set{{kNode, std::to_string(node)},
                {kDirectory, std::filesystem::current_path().string()},
                {kBin, own_folder()},
                {"PATH", own_folder() + (path == nullptr ? "" : fmt::format(":{}", path))}};
  if (!wrapper.empty()) set[kWrapper] = wrapper;
  if (!words.empty())
    set[kWords] = nlohmann::json(words).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return set;
}

Variables rank_variables(const Variables& environment, int cores) {
  Variables set;
  const auto copy = [&](const char* to, const char* open_mpi, const char* hydra, const char* otherwise) {
    set[to] = value(environment, open_mpi, value(environment, hydra, otherwise));
  };
  copy("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "0");
  copy("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "1");
  copy("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "0");
  copy("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "1");
  const std::string slots = value(environment, kSlotsVariable, "");
  set["NODE_RANK"] = slots.empty() ? value(environment, kNode, daemon_number(environment))
                                   : std::to_string(host_of_rank(slots, number(set["RANK"])));
  set["GROUP_RANK"] = set["NODE_RANK"];
  set["PATH"] = without_entry(value(environment, "PATH", ""), value(environment, kBin, ""));
  // A spinning rank keeps the one that it waits for off the core.
  constexpr const char* kYield = "OMPI_MCA_mpi_yield_when_idle";
  if (cores > 0 && number(set["LOCAL_WORLD_SIZE"]) > cores) set[kYield] = value(environment, kYield, "1");
  return set;
}

int become_rank(std::vector<std::string> words) {
  Variables environment;
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string text(*at);
    const std::size_t equals = text.find('=');
    if (equals != text.npos) environment[text.substr(0, equals)] = text.substr(equals + 1);
  }
  const std::string rank = value(environment, "OMPI_COMM_WORLD_RANK", value(environment, "PMI_RANK", "0")),
                    folder = value(environment, kDirectory, "");
  if (const std::string own = value(environment, kWords, ""); !own.empty())
    words = nlohmann::json::parse(own).get<std::vector<std::string>>();
  check(!words.empty(), "launch", "launch-rank has no program");
  if (const std::string wrapper = value(environment, kWrapper, ""); !wrapper.empty())
    words.insert(words.begin(), wrapper);
  for (const auto& [name, text] : rank_variables(environment, static_cast<int>(host::available_cores().cpus.size())))
    check_call(::setenv(name.c_str(), text.c_str(), 1) == 0, "launch", "{} cannot be set", name);
  for (const char* name : {kNode, kDirectory, kBin, kWords, kAgent, kWrapper, kSlotsVariable}) ::unsetenv(name);
  if (!folder.empty() && ::chdir(folder.c_str()) != 0)
    return say(126, rank, fmt::format("folder {}: {}", folder, std::strerror(errno)));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int code = errno;
  return say(code == ENOENT ? 127 : 126, rank, fmt::format("{}: {}", words[0], std::strerror(code)));
}

}  // namespace lockstep::launcher
