#include "lockstep/train/prepare/prepared_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/nn/embedding.h"
#include "lockstep/parallel/reduce/bucket_hook.h"
#include "lockstep/parallel/reduce/bucket_pieces.h"
#include "lockstep/train/prepare/autotune.h"
#include "lockstep/train/prepare/batch_check.h"
#include "lockstep/train/prepare/parallel_choice.h"
#include "lockstep/train/prepare/trainer_checks.h"

namespace lockstep::train {
namespace {

// Whether a step looks at norms of the gradient: parameters then begin at the blocks whose squares are summed.
bool looks_at_norms(const TrainerOptions& o) {
  return o.clip_norm > 0 || o.update.clip_layer_norm > 0 || o.noise_scale || o.rule->uses_norms() ||
         o.guards.gradient.norm > 0 || o.guards.gradient.spike > 0 || o.guards.action == GuardAction::Skip;
}

plan::ParameterStoreOptions store_options(const TrainerOptions& o, const parallel::WorldLayout& world,
                                          parallel::NodeMemory* memory) {
  return {.dtype = o.precision,
          .seed = o.seed,
          .gradient_slots = world.my_slots(),
          .optimizer_states = static_cast<int>(o.rule->states().size()),
          .bucket_bytes = o.bucket_bytes,
          .alignment = looks_at_norms(o) ? parallel::BucketPieces::kBlock : 0,
          .memory = memory,
          .states_by_owner = memory != nullptr && o.parallel.shard_optimizer && memory->domains().count() > 1};
}

// Returns the options that must be equal on all ranks, one per line; otherwise ranks would wait in different calls.
std::string text_of(const TrainerOptions& o, const std::vector<data::Field>& fields) {
  const ParallelOptions& p = o.parallel;
  const GuardOptions& g = o.guards;
  std::string text = fmt::format(
      "global batch {}\nshards {}\nmicro-batches {}\nprecision {}{}\nrule {} {}\nweight decay {}\n"
      "bucket bytes {}\nclip norm {}\npath {}\nshare weights {}\nshard optimizer {}\nwire {}\noverlap {}\n"
      "late updates {}\nhook {}\nautotune {}\nlocal steps {}\nsums of callbacks {}\nclip value {}\nclip layer norm "
      "{}\nmoving "
      "average {}\nmean from epoch {}\nnoise scale {}\nportable bits {}\n",
      o.global_batch, o.shards, o.accumulate, name_of(o.precision), o.compile.bf16 ? " with bf16" : "", o.rule->name(),
      o.rule->settings(), o.update.weight_decay, o.bucket_bytes, o.clip_norm, static_cast<int>(p.path), p.share_weights,
      p.shard_optimizer, static_cast<int>(p.wire), static_cast<int>(p.overlap), p.late_updates,
      p.hook ? p.hook->describe() : "none", o.autotune, p.local_steps, o.sums, o.update.clip_value,
      o.update.clip_layer_norm, o.average.ema, o.average.swa_start, o.noise_scale, o.is_portable());
  text +=
      fmt::format("verified every {}\ncompared every {}\non mismatch {}\nguard action {}\ngradient limits {} {} {}\n",
                  g.verify_every, g.compare_every, static_cast<int>(g.on_mismatch), static_cast<int>(g.action),
                  g.gradient.norm, g.gradient.spike, g.gradient.warn);
  for (const data::Field& f : fields) text += fmt::format("field {} {}\n", f.name, Type{f.shape, f.dtype}.str());
  return text;
}

// Checks the arguments on all ranks together, before anything is made from them.
TrainerOptions agreed(const comm::Communicator& comm, TrainerOptions options, const std::vector<data::Field>& fields,
                      const plan::ModelFunction& model) {
  if (!options.rule) options.rule = optim::sgd({});
  options.parallel.hook = hook_of(options.parallel);
  comm::collectively(comm, [&] {
    options.rule = optim::with_average(options.rule, options.average);
    check(model != nullptr, kTrainerSite, "the model function is empty, expected one from a batch to a loss");
    data::check_fields(kTrainerSite, fields);
    check_trainer_options(options, fields, comm.size());
  });
  comm::check_same(comm, "a trainer's options", text_of(options, fields));
  options.seed = comm.broadcast_value(options.seed);  // as rank 0's weights are everybody's
  return options;
}

// Returns the number of samples in the first shard's first micro-batch: all ranks compile this shape, so that all get
// the same persistent form.
std::int64_t nominal_samples(const TrainerOptions& o, const parallel::WorldLayout& world) {
  return part_of(part_of(o.global_batch, world.tree.shards(), 0).size(), o.accumulate, 0).size();
}

// Describes parameters by their shapes too, because layouts alone are ambiguous: blocks may be padded.
std::string text_of(const std::vector<NamedParameter>& parameters) {
  std::string text;
  for (const NamedParameter& p : parameters) {
    text += fmt::format("{} {} {}{}{}\n", p.name, p.parameter->shape.str(), static_cast<int>(p.parameter->role),
                        p.parameter->trainable ? "" : " frozen", p.parameter->is_integer ? " of whole numbers" : "");
  }
  return text;
}

std::string text_of(const std::vector<NamedTable>& tables, const parallel::TableOptions& options) {
  std::string text;
  if (options.shard && !tables.empty())
    text += fmt::format("sharded tables, placement {}, hot rows {}\n", static_cast<int>(options.placement),
                        options.hot_rows);
  if (!tables.empty()) text += fmt::format("exchange of tables {}\n", static_cast<int>(options.exchange));
  for (const auto& [name, table] : tables) {
    const optim::RowRuleOptions& r = options.rules.of(name);
    text += fmt::format("{} {}{} {} rate {} decay {} betas {} {} epsilon {} accumulator {} l1 {} l2 {} beta {}\n", name,
                        table->shape().str(), table->trainable ? "" : " frozen", name_of(r.rule), r.rate_scale,
                        r.weight_decay, r.beta1, r.beta2, r.epsilon, r.initial_accumulator, r.l1, r.l2, r.beta);
  }
  return text;
}

std::string form_of(plan::ParameterStore& store) {
  std::string text;
  for (const NamedParameter& p : store.parameters()) text += p.name + " " + store.layout(p.parameter).str() + "\n";
  return text;
}

}  // namespace

std::size_t NominalPlan::statistic_doubles() const {
  std::size_t doubles = 0;
  for (const RunningStatistics& s : statistics) doubles += 2 * static_cast<std::size_t>(s.mean->shape.elements());
  return doubles;
}

std::size_t NominalPlan::sums(Mode mode) const {
  std::size_t doubles = 0;
  for (const plan::PlanMetric& metric : metrics) doubles += metric.elements(mode);
  return doubles;
}

PreparedModel::PreparedModel(const comm::Communicator& comm, const nn::Module& module, const plan::ModelFunction& model,
                             std::vector<data::Field> fields, TrainerOptions options)
    : comm_(comm.duplicate()),
      world_(comm.rank(), comm.size(), options.shards),
      fields_(std::move(fields)),
      options_(agreed(comm_, std::move(options), fields_, model)),
      memory_(comm_, domains(module), options_.parallel.share_weights),
      collective_(world_.size > 1 ? std::make_shared<parallel::TreeCollective>(comm_) : nullptr),
      model_(module.named_parameters(), model, store_options(options_, world_, &memory_), tuned(module, model)) {
  const std::vector<NamedTable> tables = nn::named_tables(module);
  comm::check_same(comm_, "the model's parameters",
                   text_of(model_.parameters().parameters()) + text_of(tables, options_.tables));
  std::string operations;
  comm::collectively(comm_, [&] { plan_nominal_batch(operations); });
  comm::check_same(comm_, "parameter layouts", form_of(model_.parameters()));
  comm::check_same(comm_, "the model's operations", operations);
  if (options_.shards > 0) comm::check_same(comm_, "with --shards, kernels", kernels());
  if (!tables.empty()) make_tables(tables);
}

void PreparedModel::make_tables(const std::vector<NamedTable>& tables) {
  comm::collectively(comm_, [&] {
    check_table_options(options_);
    tables_ = parallel::TableEngine::make(comm_, world_, memory_,
                                          {.tables = tables,
                                           .options = options_.tables,
                                           .dtype = options_.precision,
                                           .seed = options_.seed,
                                           .clip_value = options_.update.clip_value});
  });
}

void PreparedModel::plan_nominal_batch(std::string& operations) {
  plan::Plan& plan = model_.plan(Mode::Train, types_of(nominal_samples(options_, world_)));
  operations = plan.operations();
  nominal_ = {.metrics = plan.metrics(), .statistics = plan.statistics(), .is_collective = plan.is_collective()};
  check(!nominal_.is_collective || world_.tree.shards() == world_.size, kTrainerSite,
        "the model sums over ranks within a pass (synchronised batch norm) with {} shards on {} ranks; the shards of a "
        "rank run one after the other, so expected as many shards as ranks, or none",
        options_.shards, world_.size);
  check_batch(options_.global_batch);
  updater_ = std::make_unique<parallel::Updater>(model_.parameters(), options_.rule, options_.update);
}

std::map<std::string, Type> PreparedModel::types_of(std::int64_t samples) const {
  std::map<std::string, Type> types;
  for (const data::Field& f : fields_) types[f.name] = {f.shape.batched(samples), f.dtype};
  return types;
}

void PreparedModel::check_batch(std::int64_t samples) const {
  const BatchParts parts{.shards = world_.tree.shards(), .accumulate = options_.accumulate};
  if (const std::string wrong = single_value_norm(nominal_.statistics, parts, samples); !wrong.empty())
    throw comm::AgreedError(wrong);
}

// Chooses the path of gradients and the size of buckets, which lay out the memory.
parallel::Domains PreparedModel::domains(const nn::Module& module) {
  const parallel::PathChoice choice = choose_path(comm_, module, options_, world_);
  chosen_.path_reason = choice.reason;
  if (options_.bucket_bytes == 0) options_.bucket_bytes = parallel::choose_bucket_bytes(comm_, choice.domains);
  return choice.domains;
}

std::string PreparedModel::kernels() const {
  const plan::CompileOptions& compile = model_.options();
  const std::string_view math = kernels::name_of(compile.kernels.conv_math);
  if (options_.is_portable()) return fmt::format("portable {} {}", name_of(options_.precision), math);
  return fmt::format(
      "{} {} {} {} choices {:016x}", kernels::native_level(), kernels::onednn_version(),
      compile.bf16 ? fmt::format("bf16 with {}", kernels::native_pairs()) : std::string(name_of(options_.precision)),
      math, chosen_.kernels);
}

std::string PreparedModel::describe_parallel(const std::string& driver) const {
  std::int64_t largest = 0;
  const auto& buckets = model_.parameters().buckets();
  for (const plan::Bucket& b : buckets) largest = std::max(largest, b.elements);
  const auto bytes = static_cast<double>(largest) * static_cast<double>(size_of(options_.precision));
  std::string text = chosen_.path_reason;
  if (tables_ != nullptr) text = fmt::format("{}{}{}", text, text.empty() ? "" : "; ", tables_->describe());
  if (world_.size == 1) return text;
  text +=
      fmt::format("; {} bucket{} of up to {:.1f} MiB", buckets.size(), buckets.size() == 1 ? "" : "s", bytes / 1048576);
  text += memory_.shares() ? "; weights once per node, each rank updates a part" : "; each rank has its own weights";
  if (options_.parallel.shard_optimizer && memory_.domains().count() > 1) text += "; optimizer state once per job";
  if (options_.parallel.wire != parallel::Wire::Exact)
    text += options_.parallel.wire == parallel::Wire::BF16 ? "; rounded to bf16" : "; rounded to f16";
  if (memory_.domains().count() > 1) text += "; driven " + driver;
  return text;
}

plan::CompileOptions PreparedModel::tuned(const nn::Module& module, const plan::ModelFunction& model) {
  plan::CompileOptions compile = options_.compile;
  compile.fold = false;
  compile.synchronisation.collective = collective_;
  if (!options_.autotune) return compile;
  const auto compile_with = [&](const kernels::KernelChooser& choose) {
    plan::CompileOptions measuring = compile;
    measuring.choose = choose;
    plan::CompiledModel(module.named_parameters(), model, store_options(options_, world_, nullptr), measuring)
        .plan(Mode::Train, types_of(nominal_samples(options_, world_)));
  };
  const Autotuned tuned = autotune(comm_, options_.autotune_cache, compile_with);
  compile.choose = tuned.choose;
  chosen_.kernels = tuned.hash;
  return compile;
}

}  // namespace lockstep::train
