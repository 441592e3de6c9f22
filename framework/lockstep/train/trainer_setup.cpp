// The part of Trainer that decides how ranks work together, compiles the model and makes the engine.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/comm/agreement.h"
#include "lockstep/comm/environment.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/parallel/self_test.h"
#include "lockstep/train/autotune.h"
#include "lockstep/train/batch_check.h"
#include "lockstep/train/parallel_choice.h"
#include "lockstep/train/trainer.h"

namespace lockstep::train {
namespace {

ParameterStoreOptions store_options(const TrainerOptions& o, const WorldLayout& world, NodeMemory* memory) {
  return {.dtype = o.precision,
          .seed = o.seed,
          .gradient_slots = world.my_slots(),
          .optimizer_states = static_cast<int>(o.rule->states().size()),
          .bucket_bytes = o.bucket_bytes,
          .memory = memory,
          .states_by_owner = memory != nullptr && o.parallel.shard_optimizer && memory->domains().count() > 1};
}

TrainerOptions prepared(TrainerOptions options) {
  if (!options.rule) options.rule = optim::sgd({});
  check(options.global_batch >= 1, "trainer", "the global batch is {} samples, expected at least 1",
        options.global_batch);
  check(options.accumulate >= 1, "trainer", "{} micro-batches, expected at least 1", options.accumulate);
  return options;
}

// The samples of the first leaf's first micro-batch: of the shape that all ranks compile, so that all fix the same
// persistent form.
std::int64_t nominal_samples(const TrainerOptions& o, const WorldLayout& world) {
  return part_of(part_of(o.global_batch, world.tree.leaves(), 0).size(), o.accumulate, 0).size();
}

std::string form_of(ParameterStore& store) {
  std::string text;
  for (const NamedParameter& p : store.parameters()) text += p.name + " " + store.layout(p.parameter).str() + "\n";
  return text;
}

}  // namespace

Trainer::Trainer(const comm::Communicator& comm, const nn::Module& module, const ModelFunction& model,
                 std::vector<data::Field> fields, TrainerOptions options)
    : comm_(comm.duplicate()),
      world_(comm.rank(), comm.size(), options.shards),
      fields_(std::move(fields)),
      options_(prepared(std::move(options))),
      memory_(comm_, domains(module), options_.parallel.share_weights),
      collective_(world_.size > 1 ? std::make_shared<TreeCollective>(comm_) : nullptr),
      model_(module.named_parameters(), model, store_options(options_, world_, &memory_), tuned(module, model)),
      heartbeat_(options_.heartbeat != nullptr ? *options_.heartbeat : own_heartbeat_) {
  check(world_.tree.leaves() >= world_.size, "trainer", "{} shards for {} ranks: expected at least one for each rank",
        options_.shards, world_.size);
  std::size_t doubles = 0;
  comm::collectively(comm_, [&] {
    Plan& nominal = model_.plan(Mode::Train, types_of(nominal_samples(options_, world_)));
    counts_ = nominal.counts();
    statistics_ = nominal.statistics();
    plans_are_collective_ = nominal.is_collective();
    check(
        !plans_are_collective_ || world_.tree.leaves() == world_.size, "trainer",
        "the model sums over ranks within a pass (synchronised batch norm) and there are {} shards on {} ranks, which "
        "run one after the other: expected as many shards as ranks, or none",
        options_.shards, world_.size);
    check_batch(options_.global_batch);
    for (const RunningStatistics& s : statistics_) doubles += 2 * static_cast<std::size_t>(s.mean->shape.elements());
    updater_ = std::make_unique<Updater>(model_.parameters(), options_.rule, options_.update);
  });
  comm::check_same(comm_, "parameter layouts", form_of(model_.parameters()));
  if (options_.shards > 0) comm::check_same(comm_, "with --shards, kernels", kernels());
  engine_ = std::make_unique<GradientEngine>(
      comm_, world_, memory_, model_.parameters(), *updater_,
      EngineOptions{.statistics = doubles,
                    .counts = counts_.size(),
                    .clip_norm = options_.clip_norm,
                    .shard_optimizer = options_.parallel.shard_optimizer,
                    .thread = drives_by_thread(),
                    .late_updates = options_.parallel.late_updates,
                    .local_steps = options_.parallel.local_steps,
                    .reduction = {.wire = options_.parallel.wire, .hook = options_.parallel.hook.get()},
                    .heartbeat = &heartbeat_,
                    .guards = options_.guards.engine()});
  if (world_.size > 1 && !options_.parallel.hook)
    check_paths(comm_, {.domains = memory_.domains(), .reduction = {.wire = options_.parallel.wire}});
  if (collective_) {
    collective_->while_waiting([this] {
      heartbeat_.wait();
      engine_->progress();
    });
  }
  const std::size_t width = kFirstCount + counts_.size();
  evaluation_ = std::make_unique<MessageControl>(comm_, world_, ControlSize{width, kControlWords});
  // Once now: MPI takes memory at the first messages, which then is seen before a forecast is made.
  add_up(std::vector(static_cast<std::size_t>(world_.my_leaves().size()), std::vector<double>(width)));
  broadcast_weights();
}

Trainer::~Trainer() = default;

void Trainer::check_batch(std::int64_t samples) const {
  const BatchParts parts{.leaves = world_.tree.leaves(), .accumulate = options_.accumulate};
  if (const std::string wrong = single_value_norm(statistics_, parts, samples); !wrong.empty())
    throw comm::AgreedError(wrong);
}

// What is to be known before memory is laid out.
Domains Trainer::domains(const nn::Module& module) {
  const DomainChoice choice = choose_domains(comm_, module, options_, world_);
  path_reason_ = choice.reason;
  if (options_.bucket_bytes == 0) options_.bucket_bytes = choose_bucket_bytes(comm_, choice.domains);
  return choice.domains;
}

// Auto begins without, and tries the thread where there are messages to move.
bool Trainer::drives_by_thread() {
  using Overlap = ParallelOptions::Overlap;
  const Overlap wanted = options_.parallel.overlap;
  const bool able = comm::Environment::current_thread_level() == comm::ThreadLevel::Multiple;
  check(wanted != Overlap::Thread || able, "overlap",
        "a communication thread needs MPI_THREAD_MULTIPLE, MPI was initialised with {}",
        comm::name_of(comm::Environment::current_thread_level()));
  if (wanted == Overlap::Auto && able && memory_.domains().count() > 1) trial_ = std::make_unique<OverlapTrial>();
  return wanted == Overlap::Thread && world_.size > 1;
}

std::string Trainer::describe_parallel() const {
  std::int64_t largest = 0;
  const auto& buckets = model_.parameters().buckets();
  for (const Bucket& b : buckets) largest = std::max(largest, b.elements);
  const auto bytes = static_cast<double>(largest) * static_cast<double>(size_of(options_.precision));
  std::string text = path_reason_;
  if (world_.size == 1) return text;
  text +=
      fmt::format("; {} bucket{} of up to {:.1f} MiB", buckets.size(), buckets.size() == 1 ? "" : "s", bytes / 1048576);
  text += memory_.shares() ? "; weights once per node, each rank updates a part" : "; each rank has its own weights";
  if (options_.parallel.shard_optimizer && memory_.domains().count() > 1) text += "; optimizer state once per job";
  if (options_.parallel.wire != Wire::Exact)
    text += options_.parallel.wire == Wire::BF16 ? "; rounded to bf16" : "; rounded to f16";
  if (memory_.domains().count() > 1) {
    text += trial_                           ? "; driven as the first steps show"
            : engine_->is_driven_by_thread() ? "; driven by a thread"
                                             : "; driven between the plan's steps";
  }
  return text;
}

CompileOptions Trainer::tuned(const nn::Module& module, const ModelFunction& model) {
  CompileOptions compile = options_.compile;
  compile.fold = false;
  compile.synchronisation.collective = collective_;
  if (!options_.autotune) return compile;
  const auto compile_with = [&](const KernelChooser& choose) {
    CompileOptions measuring = compile;
    measuring.choose = choose;
    CompiledModel(module.named_parameters(), model, store_options(options_, world_, nullptr), measuring)
        .plan(Mode::Train, types_of(nominal_samples(options_, world_)));
  };
  const Autotuned tuned = autotune(comm_, options_.autotune_cache, compile_with);
  compile.choose = tuned.choose;
  choices_ = tuned.hash;
  return compile;
}

data::DistributedSampler Trainer::sampler(const data::Dataset& dataset, const SamplingOptions& options) const {
  return data::DistributedSampler(
      {.size = dataset.size(),
       .global_batch = options.global_batch > 0 ? options.global_batch : options_.global_batch,
       .leaves = world_.tree.leaves(),
       .my_leaves = world_.my_leaves(),
       .seed = options_.seed,
       .shuffle = options.shuffle,
       .remainder = options.remainder});
}

}  // namespace lockstep::train
