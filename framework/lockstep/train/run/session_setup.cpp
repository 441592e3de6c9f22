#include "lockstep/train/run/session_setup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/tensor.h"
#include "lockstep/host/machine.h"
#include "lockstep/host/placement.h"
#include "lockstep/io/read_file.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/train/options/options_json.h"

namespace lockstep::train {

std::string options_by_line(const Options& options, std::string_view program) {
  nlohmann::json agreed = nlohmann::json::parse(canonical(options, program));
  agreed["output"] = printable(options.output);  // a path may contain any bytes, JSON only UTF-8
  return agreed.dump(1);
}

int requested_threads(const Options& options) {
  // With shards the bits depend on the threads per rank, so the default must not depend on the number of ranks; with
  // portable bits nothing depends on threads.
  const bool one = options.trainer.shards > 0 && !options.trainer.is_portable();
  return options.threads > 0 ? options.threads : one ? 1 : host::environment_threads();
}

std::string sharing_domain(const Options& options) {
  return options.sharing_domain == SharingDomain::Numa
             ? "numa " + host::Machine::here().numa_nodes(host::Machine::here().binding())
             : "";
}

host::ThreadBudget share_threads(const comm::Communicator& comm, const Options& options) {
  const host::Cores cores = host::available_cores();
  const comm::Communicator& node = comm.group("node");
  std::vector<std::vector<int>> masks;
  for (const std::string& text : node.allgather_strings(fmt::format("{}", fmt::join(cores.cpus, ",")))) {
    masks.push_back(host::parse_cpu_list(text));
  }
  return host::budget(cores, {.local_ranks = comm.local_size(),
                              .sharing = host::ranks_sharing(masks, comm.local_rank()),
                              .threads = requested_threads(options),
                              .loaders = options.loaders});
}

std::string placement_summary(const comm::Communicator& comm, const host::ThreadBudget& threads) {
  const host::Cores cores = host::available_cores();
  host::NodePlacement here{.host = comm.host(), .node_cores = cores.node_cores, .quota = cores.quota};
  const comm::Communicator& node = comm.group("node");
  const std::string mine = fmt::format("{} {} {}", comm.rank(), threads.compute, fmt::join(cores.cores, ","));
  for (const std::string& text : node.allgather_strings(mine)) {
    std::istringstream fields(text);
    host::RankPlacement rank;
    std::string list;
    fields >> rank.rank >> rank.threads >> list;
    rank.cores = host::parse_cpu_list(list);
    here.ranks.push_back(std::move(rank));
  }
  const bool speaks = comm.local_rank() == 0;
  std::map<std::string, std::vector<std::string>> hosts;  // by their placement
  const std::vector<std::string> all = comm.allgather_strings(speaks ? describe(here) : "");
  for (int r = 0; r < comm.size(); ++r) {
    if (const std::string& text = all[static_cast<std::size_t>(r)]; !text.empty())
      hosts[text].push_back(comm.topology().host(r));
  }
  std::string summary;
  for (const auto& [text, names] : hosts) {
    summary += summary.empty() ? "" : "; ";
    summary += hosts.size() > 1        ? fmt::format("{}: {}", fmt::join(names, ","), text)
               : comm.node_count() > 1 ? fmt::format("on each host {}", text)
                                       : text;
  }
  return summary;
}

bool computes_in_bf16(const comm::Communicator& comm, Precision precision) {
  const bool here = host::has_bf16_instructions() && kernels::has_onednn();
  const bool everywhere = comm.allreduce(std::int64_t{here}, comm::ReduceOp::Min) == 1;
  if (precision == Precision::BF16 && !everywhere && comm.is_root()) {
    log()->warn(
        "--precision bf16: at least one rank has a processor without bf16 instructions, or a build without oneDNN, so "
        "the run trains in f32; --precision bf16-emulated computes bf16 with f32 instructions, slowly");
  }
  return precision == Precision::BF16Emulated || (precision == Precision::BF16 && everywhere);
}

TrainerOptions trainer_options(const comm::Communicator& comm, const Options& options) {
  TrainerOptions trainer = options.trainer;
  trainer.global_batch = global_batch(options, comm.size());
  trainer.precision = dtype_of(options.precision);
  trainer.seed = options.seed;
  trainer.bucket_bytes = static_cast<std::int64_t>(options.bucket_mb * 1048576);
  trainer.rule = optim::make_rule(options.optimizer);
  std::vector<optim::ParameterGroup>& groups = trainer.update.groups;  // those of the user come before a program's own
  for (const auto& of_user : {rate_groups(options.tuning), decay_groups(options.tuning)})
    groups.insert(groups.begin(), of_user.begin(), of_user.end());
  trainer.parallel.late_updates = true;  // a session evaluates and saves on all ranks together
  trainer.tables.changes = options.checkpoints.full_tables_every > 1;
  trainer.compile.bf16 = computes_in_bf16(comm, options.precision);
  return trainer;
}

DType dtype_of(Precision precision) { return precision == Precision::F64 ? DType::F64 : DType::F32; }

bool is_higher_better(std::string_view option, std::string_view metric, std::span<const MetricRule> metrics) {
  if (metric == checkpoint::Retention::kLoss) return false;
  std::string known(checkpoint::Retention::kLoss);
  for (const MetricRule& rule : metrics) {
    if (rule.better == Better::Neither || rule.results != 1) continue;
    if (rule.name == metric) return rule.better == Better::Higher;
    known += ", " + rule.name;
  }
  fail("options",
       "--{} names the metric '{}', and the model has none of this name that can be compared; expected one of {}",
       option, metric, known);
}

checkpoint::Retention retention(const Options& options, std::span<const MetricRule> metrics) {
  checkpoint::Retention keep = checkpoint::parse_retention(options.checkpoints.keep, "options");
  if (!keep.best.empty()) keep.higher_is_better = is_higher_better("keep", keep.best, metrics);
  return keep;
}

namespace {

// Returns whether a checkpoint belongs to another run; false if its file cannot be read.
bool is_foreign(const io::Folder& checkpoints, const checkpoint::Entry& entry, const std::string& run) {
  try {
    io::FileReader reader(checkpoints, entry.path.filename().string());
    const std::string found = checkpoint::run_of(checkpoint::read_note(reader));
    return !found.empty() && found != run;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void set_checkpoints_aside(const io::Folder& output, std::optional<std::int64_t> resumed_step, const std::string& run) {
  const io::Folder checkpoints = output.make("checkpoints");
  std::optional<io::Folder> aside;
  for (const checkpoint::Entry& entry : checkpoint::list(checkpoints)) {
    if (resumed_step && entry.step <= *resumed_step && !is_foreign(checkpoints, entry, run)) continue;
    for (int number = 1; !aside; ++number) {
      const std::string name = fmt::format("checkpoints.{}", number);
      if (output.make_new(name)) aside = output.make(name);
    }
    const std::string name = entry.path.filename().string();
    checkpoints.move(name, *aside, name);
  }
}

std::string arithmetic(const host::ThreadBudget& threads) {
  const host::CpuInfo cpu = host::cpu_info();
  return fmt::format("{} threads\n{}\n{}", threads.compute, cpu.instructions, cpu.blas);
}

std::string fingerprint(const data::Dataset& dataset) {
  constexpr std::int64_t kSamples = 64;
  std::vector<Tensor> sample;
  std::vector<std::byte*> fields;
  for (const data::Field& f : dataset.fields()) fields.push_back(sample.emplace_back(f.shape, f.dtype).raw());
  std::uint64_t hash = 0;
  for (std::int64_t i = 0; i < std::min(kSamples, dataset.size()); ++i) {
    dataset.read(i * dataset.size() / kSamples % dataset.size(), fields);
    for (const Tensor& field : sample) hash = XXH3_64bits_withSeed(field.raw(), field.bytes(), hash);
  }
  return fmt::format("{} samples, {:016x}", dataset.size(), hash);
}

std::string host_list(const comm::Communicator& comm) {
  std::vector<std::pair<std::string, int>> nodes(static_cast<std::size_t>(comm.node_count()));
  for (int r = 0; r < comm.size(); ++r) {
    auto& [host, ranks] = nodes[static_cast<std::size_t>(comm.topology().node_of(r))];
    host = comm.topology().host(r);
    ++ranks;
  }
  std::string text;
  for (const auto& [host, ranks] : nodes) {
    text += fmt::format("{}{} ({} rank{})", text.empty() ? "" : ", ", host, ranks, ranks == 1 ? "" : "s");
  }
  return text;
}

}  // namespace lockstep::train
