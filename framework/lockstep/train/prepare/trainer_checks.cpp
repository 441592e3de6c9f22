#include "lockstep/train/prepare/trainer_checks.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/subnormals.h"
#include "lockstep/parallel/reduce/bucket_hook.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMostShards = 1 << 20, kMostSamples = (std::int64_t{1} << 31) - 1;
constexpr double kGiB = 1 << 30, kMostBytes = 1024 * kGiB;

// Returns the option by which a step looks at norms of the whole gradient, with its value; an empty text without one.
std::string option_of_norms(const TrainerOptions& o) {
  if (o.noise_scale) return "noise_scale";
  if (o.rule->uses_norms()) return formatted("rule {}", o.rule->name());
  if (o.update.clip_layer_norm != 0) return formatted("update.clip_layer_norm {}", o.update.clip_layer_norm);
  if (o.clip_norm > 0) return formatted("clip_norm {}", o.clip_norm);
  if (o.guards.gradient.norm > 0) return formatted("guards.gradient.norm {}", o.guards.gradient.norm);
  if (o.guards.gradient.spike > 0) return formatted("guards.gradient.spike {}", o.guards.gradient.spike);
  return o.guards.action == GuardAction::Skip ? "guards.action Skip" : "";
}

void check_local_steps(const TrainerOptions& o) {
  if (o.parallel.hook == nullptr || o.parallel.hook->reduces()) return;
  const std::string option = option_of_norms(o);
  check(option.empty(), kTrainerSite,
        "{} with a hook that does not reduce (parallel.local_steps is {}), expected an update and guards without norms "
        "of the gradient: no rank has the whole gradient",
        option, o.parallel.local_steps);
}

void check_options(const TrainerOptions& o, int ranks) {
  check(o.global_batch >= 1, kTrainerSite, "the global batch is {} samples, expected at least 1", o.global_batch);
  check(o.shards == 0 || (o.shards >= ranks && o.shards <= kMostShards), kTrainerSite,
        "{} shards for {} ranks: expected at least one for each rank, and at most {}", o.shards, ranks, kMostShards);
  check(o.accumulate >= 1 && o.accumulate <= o.global_batch, kTrainerSite,
        "{} micro-batches of a global batch of {}, expected at least 1, and at most the number of samples",
        o.accumulate, o.global_batch);
  check(is_floating(o.precision), kTrainerSite, "the precision is {}, expected f32 or f64", name_of(o.precision));
  check(!o.is_portable() || !(o.autotune || o.compile.bf16 || o.parallel.path == ParallelOptions::Path::Mpi),
        kTrainerSite, "portable bits with {}, expected {}",
        o.autotune       ? "autotuned kernels"
        : o.compile.bf16 ? "bf16"
                         : "gradients that MPI sums",
        o.autotune       ? "kernels that follow from shapes: measured choices differ between machines"
        : o.compile.bf16 ? "f32 or f64: processors round products of bf16 differently"
                         : "another path: MPI libraries add in other orders");
  check(!o.is_portable() || !flushes_subnormals(), kTrainerSite,
        "portable bits in a process that makes zeros of subnormal numbers, expected one that computes with them: link "
        "the program and its libraries without -ffast-math and -Ofast (Intel's compilers: -no-ftz -fp-model precise)");
  check(o.bucket_bytes >= 0, kTrainerSite, "buckets of {} bytes, expected at least 1, or 0", o.bucket_bytes);
  check(std::isfinite(o.clip_norm) && o.clip_norm >= 0, kTrainerSite,
        "the largest norm of the gradient is {}, expected a positive number, or 0 for any", o.clip_norm);
  check(o.parallel.local_steps >= 1, kTrainerSite, "{} local steps, expected at least 1", o.parallel.local_steps);
  const std::int64_t parts = std::max<std::int64_t>(o.shards, ranks);
  check(!o.noise_scale || std::min(parts, o.global_batch) >= 2, kTrainerSite,
        "the noise scale of the gradient with {} shards of {} samples, expected at least two shards (or ranks) with "
        "samples: it compares their gradients",
        parts, o.global_batch);
  check(o.guards.verify_every >= 0 && o.guards.compare_every >= 0, kTrainerSite,
        "memory is verified every {} updates and compared every {}, expected positive numbers, or 0 for never",
        o.guards.verify_every, o.guards.compare_every);
}

// Kernels count rows in 32 bits, and planning takes time for each row.
void check_size(const TrainerOptions& o, const std::vector<data::Field>& fields, int ranks) {
  const std::int64_t shards = o.shards > 0 ? o.shards : ranks;
  const std::int64_t samples = part_of(part_of(o.global_batch, shards, 0).size(), o.accumulate, 0).size();
  double bytes = 0;
  for (const data::Field& f : fields) bytes += static_cast<double>(f.bytes());
  bytes *= static_cast<double>(samples);
  check(
      samples <= kMostSamples && bytes <= kMostBytes, kTrainerSite,
      "a global batch of {} has micro-batches of {} samples, whose fields take {:.3g} GiB; expected at most {} samples "
      "and {:.3g} GiB: use more shards or more micro-batches",
      o.global_batch, samples, bytes / kGiB, kMostSamples, kMostBytes / kGiB);
}

}  // namespace

void check_trainer_options(const TrainerOptions& options, const std::vector<data::Field>& fields, int ranks) {
  check_options(options, ranks);
  check_local_steps(options);
  check_size(options, fields, ranks);
}

void check_table_options(const TrainerOptions& o) {
  const bool alone = o.parallel.hook != nullptr && !o.parallel.hook->reduces();
  check(
      !alone && o.parallel.local_steps == 1, kTrainerSite,
      "sparse tables with steps that each rank makes alone, expected steps whose gradients are summed over all ranks");
  check(o.tables.hot_rows >= 0 && (o.tables.hot_rows == 0 || o.tables.shard), kTrainerSite,
        "{} hot rows{}, expected 0 or a positive number of rows of tables that are sharded: other tables lie on every "
        "node anyway",
        o.tables.hot_rows, o.tables.shard ? "" : " of tables that are not sharded");
  check(!o.average.any(), kTrainerSite,
        "an average of the weights is set for a model with sparse tables, expected none: it covers dense parameters "
        "alone");
  check(o.update.clip_layer_norm == 0, kTrainerSite,
        "clipping by the norm of each parameter ({}) with sparse tables, expected none: it covers dense parameters "
        "alone; clipping by the norm of the whole gradient, or by value, covers tables, too",
        o.update.clip_layer_norm);
}

}  // namespace lockstep::train
