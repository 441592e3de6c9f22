// Whether the kernel lets a process read another's memory (cross memory attach), by which MPI copies long messages
// within a node once and not twice.
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "lockstep/core/error.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

// Of a process's own memory the kernel always allows it; a container's filter of system calls does not.
int error_of_own_read() {
  int from = 1, to = 0;
  const iovec local{&to, sizeof(to)}, remote{&from, sizeof(from)};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof(from) ? 0 : errno;
}

json gather_direct_copies(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  int scope = 0;  // no such file: no restriction
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return {{"scope", scope}, {"error", error_of_own_read()}, {"root", geteuid() == 0}, {"ranks", subject.local_ranks}};
}

std::vector<Finding> conclude_direct_copies(const Facts& facts) {
  std::vector<Finding> findings;
  for (const RankFacts& node : facts) {
    const int scope = node.value.at("scope"), error = node.value.at("error"), ranks = node.value.at("ranks");
    if (ranks == 1) continue;
    if (error != 0) {
      findings.push_back({.level = Level::Yellow,
                          .what = formatted("direct copies between processes are forbidden (errno {}), MPI's messages "
                                            "within the node may fail or take two copies",
                                            error),
                          .where = node.host,
                          .mend = "docker run --cap-add=SYS_PTRACE, or --mca btl_vader_single_copy_mechanism none"});
    } else if (scope > 1 || (scope == 1 && !node.value.at("root").get<bool>())) {
      findings.push_back({.level = Level::Yellow,
                          .what = formatted("ptrace_scope is {}, expected 0: MPI copies long messages within the node "
                                            "twice",
                                            scope),
                          .where = node.host,
                          .mend = "sysctl -w kernel.yama.ptrace_scope=0"});
    }
  }
  return or_green(std::move(findings), "processes of a node may copy from each other");
}

}  // namespace

const Check kDirectCopies{"direct-copies", Cost::Cheap, gather_direct_copies, conclude_direct_copies};

}  // namespace lockstep::preflight
