#include "lockstep/train/run/start_checks.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <span>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/log.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/tensor.h"
#include "lockstep/host/build_id.h"
#include "lockstep/host/threads.h"
#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/look.h"
#include "lockstep/train/options/options_json.h"
#include "lockstep/train/run/run_facts.h"

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

// Returns the options that must be equal on all ranks, one per line, so that an error can name the one that differs. It
// includes --output: a rank with another one would log, and look for checkpoints, in another folder.
std::string options_by_line(const Options& options, std::string_view program) {
  nlohmann::json agreed = nlohmann::json::parse(canonical(options, program));
  agreed["output"] = printable(options.output);  // a path may contain any bytes, JSON only UTF-8
  return agreed.dump(1);
}

// Returns the facts that determine the order of sums in kernels, one per line: threads, instructions, BLAS.
std::string arithmetic(const host::ThreadBudget& threads) {
  const host::CpuInfo cpu = host::cpu_info();
  return fmt::format("{} threads\n{}\n{}", threads.compute, cpu.instructions, cpu.blas);
}

}  // namespace

std::string fingerprint(const data::Dataset& dataset) {
  const std::int64_t samples = std::min<std::int64_t>(64, dataset.size());
  std::vector<Tensor> sample;
  std::vector<std::byte*> fields;
  for (const data::Field& f : dataset.fields()) fields.push_back(sample.emplace_back(f.shape, f.dtype).raw());
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    dataset.read(i * dataset.size() / samples, fields);
    for (const Tensor& field : sample) hash = XXH3_64bits_withSeed(field.raw(), field.bytes(), hash);
  }
  return fmt::format("{} samples, {:016x}", dataset.size(), hash);
}

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
  subject.same.data = comm::collectively(facts.comm, [&] {  // a file may be unreadable on one rank alone
    std::string data = facts.data.stream ? facts.data.stream->description : fingerprint(*facts.data.train);
    if (facts.data.eval) data += "\n" + fingerprint(*facts.data.eval);
    for (const auto& [name, set] : facts.data.more_eval) data += "\n" + name + ": " + fingerprint(*set);
    return data;
  });
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
