#include "lockstep/train/run/start_checks.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <span>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "lockstep/host/build_id.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/look.h"
#include "lockstep/train/run/run_facts.h"
#include "lockstep/train/run/session_setup.h"

namespace lockstep::train {
namespace {

preflight::Subject subject_on(const comm::Communicator& comm) {
  return {.rank = comm.rank(),
          .node = comm.node_rank(),
          .local_rank = comm.local_rank(),
          .local_ranks = comm.local_size(),
          .host = comm.host()};
}

std::vector<preflight::Finding> look(const comm::Communicator& comm, std::span<const preflight::Check* const> checks,
                                     const preflight::Subject& subject) {
  preflight::CommunicatorExchange exchange(comm);
  std::vector<preflight::Finding> findings = preflight::look(checks, subject, exchange);
  for (const preflight::Finding& finding : findings) {
    for (const preflight::Check* check : checks) {
      if (check->name == finding.check && check->cost == preflight::Cost::Required &&
          finding.level == preflight::Level::Red)
        throw comm::AgreedError(preflight::line(finding));
    }
  }
  return findings;
}

}  // namespace

void check_program(const comm::Communicator& world, const std::string& name) {
  preflight::Subject subject = subject_on(world);
  subject.same.program = name;
  const bool allowed = std::getenv("LOCKSTEP_ALLOW_BUILDS") != nullptr;
  subject.same.build = world.allreduce(std::int32_t{allowed}, comm::ReduceOp::Max) == 0 ? host::build_id() : "";
  look(world, std::array{&preflight::kProgram, &preflight::kBuild}, subject);
}

StartReport check_start(const RunFacts& facts) {
  const auto began = std::chrono::steady_clock::now();
  const Options& o = facts.options;
  preflight::Subject subject = subject_on(facts.comm);
  subject.threads = facts.threads.compute;
  subject.same.program = facts.name;
  subject.same.options = options_by_line(o, facts.program);
  if (o.trainer.shards > 0 && !o.trainer.is_portable()) subject.same.arithmetic = arithmetic(facts.threads);
  if (facts.saves_by_itself()) subject.output = o.output;
  StartReport report{.findings = look(facts.comm, preflight::start_checks(o.preflight), subject)};
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

void check_data(const RunFacts& facts) {
  preflight::Subject subject = subject_on(facts.comm);
  subject.same.data = facts.data.stream ? facts.data.stream->description : fingerprint(*facts.data.train);
  if (facts.data.eval) subject.same.data += "\n" + fingerprint(*facts.data.eval);
  for (const auto& [name, set] : facts.data.more_eval) subject.same.data += "\n" + name + ": " + fingerprint(*set);
  look(facts.comm, std::array{&preflight::kData}, subject);
}

void tell(const StartReport& report, const comm::Communicator& comm) {
  if (!comm.is_root()) return;
  for (const preflight::Finding& finding : report.findings) {
    if (finding.level == preflight::Level::Yellow) log()->warn("{}", preflight::line(finding));
    if (finding.level == preflight::Level::Red) log()->error("{}", preflight::line(finding));
  }
}

}  // namespace lockstep::train
