// Whether the kernel lets a process read another's memory (cross memory attach), by which MPI copies long messages
// within a node once and not twice.
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <span>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/io/child_process.h"
#include "lockstep/preflight/checks/checks.h"

namespace lockstep::preflight {
namespace {

using nlohmann::json;

// Why `from` of a process cannot be read; 0: it can.
int error_of_read(pid_t process, int& from) {
  int to = 0;
  const iovec local{&to, sizeof(to)}, remote{&from, sizeof(from)};
  return process_vm_readv(process, &local, 1, &remote, 1, 0) == sizeof(from) ? 0 : errno;
}

template <class T>
void tell(int pipe, const T& value) {
  io::write_or_exit(pipe, std::as_bytes(std::span(&value, 1)));
}

template <class T>
T heard(io::ChildProcess& child) {
  T value{};
  check(child.read(std::as_writable_bytes(std::span(&value, 1))), "direct-copies", "a process for the test ended: {}",
        child.wait());
  return value;
}

// The same of a process that is neither this one nor above it and that lets every process read it, as MPI does in its
// ranks. With a ptrace_scope of 1 that is enough; with 2 or 3 it is not, but for root.
int error_between_processes() {
  int from = 1;
  io::ChildProcess read({}, [](int pipe) {
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // unknown to a kernel without ptrace_scope
    tell(pipe, getpid());
    pause();
  });
  const auto process = heard<pid_t>(read);
  io::ChildProcess reader({}, [&](int pipe) { tell(pipe, error_of_read(process, from)); });
  return heard<int>(reader);
}

// Whether the caller has told Open MPI to make none; mpirun hands its --mca on to ranks as such a variable.
bool are_unwanted() {
  for (const char* name : {"OMPI_MCA_btl_vader_single_copy_mechanism", "OMPI_MCA_btl_sm_single_copy_mechanism"}) {
    const char* value = std::getenv(name);  // the second one is Open MPI 5's
    if (value != nullptr && value == std::string_view("none")) return true;
  }
  return false;
}

json gather_direct_copies(const Subject& subject, Exchange&) {
  if (!subject.speaks()) return nullptr;
  int scope = 0;  // no such file: no restriction
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  if (subject.local_ranks == 1 || are_unwanted()) return {{"scope", scope}, {"error", 0}};  // there is nothing to copy
  // Of a process's own memory the kernel always allows it; a container's filter of system calls does not. Without a
  // ptrace_scope nothing else can forbid it, and no process is started.
  int own = 1;
  int error = error_of_read(getpid(), own);
  if (error == 0 && scope > 0) error = error_between_processes();
  return {{"scope", scope}, {"error", error}};
}

std::vector<Finding> conclude_direct_copies(const Facts& facts) {
  std::vector<Finding> findings;
  for (const RankFacts& node : facts) {
    const int scope = node.value.at("scope"), error = node.value.at("error");
    if (error == 0) continue;
    const bool by_scope = scope > 1;
    findings.push_back(
        {.level = Level::Yellow,
         .what = formatted("direct copies between processes are forbidden (errno {}{}), MPI's messages within the node "
                           "may fail or take two copies",
                           error, by_scope ? formatted(", ptrace_scope {}, expected 0 or 1", scope) : ""),
         .where = node.host,
         .mend = formatted("{}, or mpirun --mca btl_vader_single_copy_mechanism none",
                           by_scope ? "sysctl -w kernel.yama.ptrace_scope=1 (from 3: after a restart of the machine)"
                                    : "docker run --cap-add=SYS_PTRACE")});
  }
  return or_green(std::move(findings), "processes of a node may copy from each other");
}

}  // namespace

const Check kDirectCopies{"direct-copies", Cost::Cheap, gather_direct_copies, conclude_direct_copies};

}  // namespace lockstep::preflight
