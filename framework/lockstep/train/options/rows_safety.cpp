#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup safety_rows(Options& o) {
  return {"Safety",
          {
              {.name = "time-limit",
               .value = option_value(o.time.limit),
               .argument = "TIME",
               .text = "write a checkpoint and end with status 75 when this time since the start is about to be over: "
                       "02:00:00, 1-12:00:00, 90m, 2h; auto: the end of the Slurm job, if there is one; none",
               .per_node = true,
               .effect = Effect::None},
              {.name = "time-margin",
               .value = option_value(o.time.margin),
               .argument = "TIME",
               .text = "stop this long before --time-limit; auto: 30 s (a tenth of a limit below 5 min), three of the "
                       "slowest recent steps and two checkpoints",
               .per_node = true,
               .effect = Effect::None},
              {.name = "no-preflight",
               .value = Negated{&o.preflight},
               .text = "do not look at cores, shared memory, limits, clocks, disk and versions of libraries before the "
                       "first step",
               .per_node = true,
               .effect = Effect::None},
              {.name = "stall-timeout",
               .value = option_value(o.stall.report),
               .argument = "SECONDS",
               .text = "name a rank that has not moved for so long, with its host, step, process state and stack; ten "
                       "times as long while it compiles or saves; 0: do not watch",
               .effect = Effect::None},
              {.name = "abort-timeout",
               .value = option_value(o.stall.abort),
               .argument = "SECONDS",
               .text = "end the job with status 76 when a rank has not moved for so long; 0: never",
               .effect = Effect::None},
              {.name = "hash-every",
               .value = option_value(o.hash_every),
               .argument = "N",
               .text = "updates between lines of OUTPUT/hashes.jsonl, a hash of every tensor by which `lockstep "
                       "compare` finds where two runs part; 0: none",
               .effect = Effect::None},
              {.name = "verify-every",
               .value = option_value(o.trainer.guards.verify_every),
               .argument = "N",
               .text = "updates between looks at hashes of weights and optimizer state in memory, taken when they were "
                       "written; 0: never",
               .effect = Effect::None},
              {.name = "compare-every",
               .value = option_value(o.trainer.guards.compare_every),
               .argument = "N",
               .text = "updates between comparisons of the copies of weights that nodes (or ranks) have; 0: never",
               .effect = Effect::None},
              {.name = "on-mismatch",
               .value = option_value(o.trainer.guards.on_mismatch),
               .argument = "WHAT",
               .text = "when memory is not what was written or copies differ: repair (from a copy that is right, else "
                       "rollback), rollback (load the newest checkpoint and go on, else stop), or stop (status 77)",
               .effect = Effect::None},
              {.name = "guard-action",
               .value = option_value(o.trainer.guards.action),
               .argument = "WHAT",
               .text = "when the loss is not finite, or the gradient past a limit: log, skip the update (also where "
                       "the gradient alone is not finite), or stop (status 77)"},
              {.name = "guard-norm",
               .value = option_value(o.trainer.guards.gradient.norm),
               .argument = "X",
               .text = "largest norm of the gradient before clipping; 0: any"},
              {.name = "guard-spike",
               .value = option_value(o.trainer.guards.gradient.spike),
               .argument = "X",
               .text = "largest norm of any parameter's gradient, in multiples of its running mean; 0: any"},
              {.name = "guard-warn",
               .value = option_value(o.trainer.guards.gradient.warn),
               .argument = "X",
               .text = "part of --guard-norm and --guard-spike from which a gradient is logged",
               .high = 1,
               .above_low = true},
          }};
}

}  // namespace lockstep::train
