#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup rank_rows(Options& o) {
  return {
      "Ranks",
      {
          {.name = "accumulate",
           .value = option_value(o.trainer.accumulate),
           .text = "micro-batches per rank and update",
           .low = 1,
           .high = 1e5,
           .resume = Resume::SameWithShards,
           .reason = "micro-batches are summed one after the other"},
          {.name = "shards",
           .value = option_value(o.trainer.shards),
           .text = "cut each global batch into N parts, at most one per sample, for the same bits at any number of "
                   "ranks up to N; 0: one per rank",
           .high = 1e6,
           .resume = Resume::SameWithShards,
           .reason = "other shards give other bits"},
          {.name = "sync-bn",
           .value = option_value(o.trainer.compile.synchronisation.all_norms),
           .text = "batch norms use the statistics of a micro-batch over all ranks, not those of each rank's samples"},
          {.name = "threads",
           .value = option_value(o.threads),
           .text = "compute threads per rank; 0: one per core, but 1 with --shards, because bits depend on it unless "
                   "--bits portable",
           .high = 4096,
           .per_node = true},
          {.name = "loaders",
           .value = option_value(o.loaders),
           .text = "threads per rank that prepare batches; 0: none; -1: chosen from the cores",
           .low = -1,
           .high = 4096,
           .per_node = true,
           .effect = Effect::None},
      }};
}

OptionGroup communication_rows(Options& o) {
  return {
      "Communication",
      {
          {.name = "allreduce",
           .value = option_value(o.trainer.parallel.path),
           .text = "path of gradients: shared (in a node's memory), hierarchical (in memory, and by messages "
                   "between nodes), messages (between all ranks); these three give the same bits; mpi "
                   "(MPI_Allreduce); auto: the first that is possible, with the reason in the log",
           .effect = Effect::Order},
          {.name = "sharing-domain",
           .value = option_value(o.sharing_domain),
           .text = "ranks that exchange through memory and share weights: node (all ranks of a node), or numa (the "
                   "ranks bound to one NUMA domain)",
           .effect = Effect::Order},
          {.name = "no-share-weights",
           .value = Negated{&o.trainer.parallel.share_weights},
           .text = "each rank has its own weights and optimizer state; otherwise the ranks of a node share one "
                   "copy, and each rank updates a part of it",
           .effect = Effect::Order},
          {.name = "shard-optimizer",
           .value = option_value(o.trainer.parallel.shard_optimizer),
           .text = "optimizer state once per job, a part on each rank (ZeRO stage 1)",
           .effect = Effect::Order},
          {.name = "shard-tables",
           .value = option_value(o.trainer.tables.shard),
           .text = "each row of a sparse table on one rank of the job; otherwise each node has all rows",
           .effect = Effect::Order},
          {.name = "table-placement",
           .value = option_value(o.trainer.tables.placement),
           .text = "with --shard-tables, rows lie where a hash of their number says (hash), or each rank has one "
                   "part of each table (range)",
           .effect = Effect::Order},
          {.name = "hot-rows",
           .value = option_value(o.trainer.tables.hot_rows),
           .text = "with --shard-tables, every rank has replicas of the N rows that are used most in the first steps",
           .high = 1 << 30,
           .effect = Effect::Order},
          {.name = "table-exchange",
           .value = option_value(o.trainer.tables.exchange),
           .text = "form in which the row gradients of sparse tables travel: rows, blocks (all rows of a table, for "
                   "tables of which a step uses most rows), or auto (what the first step shows)",
           .effect = Effect::Order},
          {.name = "wire",
           .value = option_value(o.trainer.parallel.wire),
           .text = "type to which gradients are rounded at every edge of the sum, in a node and on the network; "
                   "bf16 and f16 halve the bytes; additions are f32",
           .resume = Resume::SameWithShards,
           .reason = "every edge of the sum rounds"},
          {.name = "overlap",
           .value = option_value(o.trainer.parallel.overlap),
           .text = "driver of messages while gradients are computed: thread, steps (the computing thread, between "
                   "steps of its plan), or auto (the faster one in the first steps)",
           .effect = Effect::Order},
          {.name = "bucket-mb",
           .value = option_value(o.bucket_mb),
           .text = "MiB of gradients that are reduced together; 0: chosen from the network's latency and bandwidth",
           .high = 4096,
           .effect = Effect::Order},
          {.name = "clip-norm",
           .value = option_value(o.trainer.clip_norm),
           .text = "largest norm of the gradient, all parameters together; 0: any",
           .rounding = Rounding::ToWeights},
          {.name = "topk",
           .value = option_value(o.trainer.parallel.topk),
           .text = "exchange only this fraction of the gradient, its largest elements, and keep the others for "
                   "later steps; 0: all",
           .high = 1},
          {.name = "local-steps",
           .value = option_value(o.trainer.parallel.local_steps),
           .text = "each rank trains N steps alone, then weights and optimizer state are averaged (local SGD); "
                   "1: gradients are averaged in every step",
           .low = 1,
           .high = 1e6},
      }};
}

}  // namespace lockstep::train
