#include "tools/launcher/node.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/host/network.h"
#include "lockstep/host/threads.h"
#include "lockstep/launch/host_list.h"
#include "lockstep/launch/mpirun_kind.h"
#include "tools/launcher/secret.h"

namespace lockstep::launcher {
namespace {

bool is_file(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(path, error);
}

}  // namespace

std::string host_name() {
  const std::string name = host::host_name();
  return name.substr(0, name.find('.'));
}

int ranks_of_node(const std::string& text) {
  if (text == "auto" || text == "cpu") {
    const host::Cores cores = host::available_cores();
    return cores.quota > 0 ? std::clamp(static_cast<int>(cores.quota), 1, cores.physical) : cores.physical;
  }
  int ranks = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), ranks);
  check(error == std::errc{} && end == text.data() + text.size() && ranks > 0 && ranks <= launch::kMostSlots, "launch",
        "--nproc-per-node is '{}', expected a number of ranks from 1 to {}, or auto", text, launch::kMostSlots);
  return ranks;
}

Join describe_node(const LaunchOptions& options, int node, int nodes) {
  Join join{.nodes = nodes,
            .node = node,
            .ranks = ranks_of_node(options.ranks_per_node),
            .host = host_name(),
            .version = options.version,
            .mpi = comm::Environment::library(),
            .words = options.words};
  const std::filesystem::path program = launch::find_program(options.words[0]);
  const std::string folder = std::filesystem::current_path().string();
  if (program.empty()) {
    join.problem = fmt::format("no program '{0}' in PATH; ./{0} is one in the working directory", options.words[0]);
  } else if (!is_file(program)) {
    join.problem = fmt::format("no program '{}' (working directory {})", program.string(), folder);
  } else if (::access(program.c_str(), X_OK) != 0) {
    join.problem = fmt::format("'{}' is not executable", program.string());
  } else if (nodes > 1) {
    join.program = file_digest(program);
  }
  return join;
}

}  // namespace lockstep::launcher
