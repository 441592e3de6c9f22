#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup rank_rows(Options& o) {
  return {
      "Ranks",
      {
          {.name = "accumulate",
           .value = option_value(o.trainer.accumulate),
           .argument = "N",
           .text = "micro-batches per rank and update",
           .low = 1,
           .high = 1e5,
           .resume = Resume::SameWithShards,
           .reason = "micro-batches are added one after the other"},
          {.name = "shards",
           .value = option_value(o.trainer.shards),
           .argument = "S",
           .text = "cut each global batch into S parts, at most one per sample, for the same bits at any number of "
                   "ranks up to S; 0: one per rank",
           .high = 1e6,
           .resume = Resume::SameWithShards,
           .reason = "other shards give other bits"},
          {.name = "sync-bn",
           .value = option_value(o.trainer.compile.synchronisation.all_norms),
           .text =
               "batch norms normalise by the statistics of all ranks' samples of a micro-batch, not each rank's own"},
          {.name = "threads",
           .value = option_value(o.threads),
           .argument = "N",
           .text = "compute threads per rank; 0: as many as it has cores, with --shards 1, as bits depend on it",
           .high = 4096,
           .per_node = true},
          {.name = "loaders",
           .value = option_value(o.loaders),
           .argument = "N",
           .text = "threads per rank that prepare batches; 0: none; -1: chosen from the cores",
           .low = -1,
           .high = 4096,
           .per_node = true,
           .effect = Effect::None},
      }};
}

OptionGroup communication_rows(Options& o) {
  return {"Communication",
          {
              {.name = "allreduce",
               .value = option_value(o.trainer.parallel.path),
               .argument = "PATH",
               .text = "how gradients are summed: shared (in a node's memory), hierarchical (that, and messages "
                       "between nodes), messages (between all ranks), all of which give the same bits; mpi "
                       "(MPI_Allreduce); auto takes the first that can be and says why",
               .effect = Effect::Order},
              {.name = "sharing-domain",
               .value = option_value(o.sharing_domain),
               .argument = "WHAT",
               .text = "ranks that exchange through memory and share weights: those of a node, or those bound to the "
                       "same numa domain of it",
               .effect = Effect::Order},
              {.name = "no-share-weights",
               .value = Negated{&o.trainer.parallel.share_weights},
               .text = "every rank keeps weights and optimizer state of its own; else ranks of a node share one copy, "
                       "of which each updates a part",
               .effect = Effect::Order},
              {.name = "shard-optimizer",
               .value = option_value(o.trainer.parallel.shard_optimizer),
               .text = "optimizer state once per job, a part on each rank (ZeRO stage 1)",
               .effect = Effect::Order},
              {.name = "wire",
               .value = option_value(o.trainer.parallel.wire),
               .argument = "TYPE",
               .text = "what gradients are rounded to at every edge of the sum, in a node and on the network: half the "
                       "bytes for bf16 and f16; additions stay f32",
               .resume = Resume::SameWithShards,
               .reason = "every edge of the sum rounds"},
              {.name = "overlap",
               .value = option_value(o.trainer.parallel.overlap),
               .argument = "WHO",
               .text = "who moves messages on while gradients are computed: thread, steps (the computation, between "
                       "its steps), or auto: what is faster in the first steps",
               .effect = Effect::Order},
              {.name = "bucket-mb",
               .value = option_value(o.bucket_mb),
               .argument = "X",
               .text = "MiB of gradients that are reduced together; 0: from the network's latency and bandwidth",
               .high = 4096,
               .effect = Effect::Order},
              {.name = "clip-norm",
               .value = option_value(o.trainer.clip_norm),
               .argument = "X",
               .text = "largest norm of the gradient, all parameters together; 0: any",
               .rounding = Rounding::ToWeights},
              {.name = "topk",
               .value = option_value(o.trainer.parallel.topk),
               .argument = "X",
               .text = "exchange only this part of the gradient, its largest elements, and keep the rest for later "
                       "steps; 0: all",
               .high = 1},
              {.name = "local-steps",
               .value = option_value(o.trainer.parallel.local_steps),
               .argument = "K",
               .text = "each rank trains K steps by itself, then weights and optimizer state are averaged (local SGD); "
                       "1: gradients are averaged in every step",
               .low = 1,
               .high = 1e6},
          }};
}

}  // namespace lockstep::train
