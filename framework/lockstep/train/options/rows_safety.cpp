#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

OptionGroup safety_rows(Options& o) {
  return {
      "Safety",
      {
          {.name = "time-limit",
           .value = option_value(o.time.limit),
           .argument = "TIME",
           .text = "write a checkpoint and end with status 75 before this time since the start is over: "
                   "02:00:00, 1-12:00:00, 90m, 2h; auto: the end of the Slurm job, if there is one; none",
           .per_node = true,
           .effect = Effect::None},
          {.name = "time-margin",
           .value = option_value(o.time.margin),
           .argument = "TIME",
           .text = "time between the stop and --time-limit; auto: 30 s (a tenth of a limit below 5 min), plus the "
                   "time of three slow steps and two checkpoints",
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
           .text =
               "report a rank that has not moved for this many seconds, with host, step, process state and stack; ten "
               "times as long while it compiles or saves; 0: no watchdog",
           .effect = Effect::None},
          {.name = "abort-timeout",
           .value = option_value(o.stall.abort),
           .text = "end the job with status 76 when a rank has not moved for this many seconds; 0: never",
           .effect = Effect::None},
          {.name = "hash-every",
           .value = option_value(o.hash_every),
           .text = "updates between lines of OUTPUT/hashes.jsonl: hashes of all tensors, with which `lockstep "
                   "compare` finds the first difference of two runs; 0: none",
           .effect = Effect::None},
          {.name = "verify-every",
           .value = option_value(o.trainer.guards.verify_every),
           .text = "updates between verifications of weights and optimizer state in memory by checksums that were "
                   "computed when they were written; 0: never",
           .effect = Effect::None},
          {.name = "compare-every",
           .value = option_value(o.trainer.guards.compare_every),
           .text = "updates between comparisons of the copies of weights that nodes (or ranks) have; 0: never",
           .effect = Effect::None},
          {.name = "on-mismatch",
           .value = option_value(o.trainer.guards.on_mismatch),
           .text = "action when memory has changed by itself or copies differ: repair (from a correct copy, else "
                   "rollback), rollback (continue from the newest checkpoint, else stop), or stop (status 77)",
           .effect = Effect::None},
          {.name = "guard-action",
           .value = option_value(o.trainer.guards.action),
           .text = "action when the loss is not finite or the gradient exceeds a limit: log, skip the update (also "
                   "if only the gradient is not finite), or stop (status 77)"},
          {.name = "guard-norm",
           .value = option_value(o.trainer.guards.gradient.norm),
           .text = "largest norm of the gradient before clipping; 0: any"},
          {.name = "guard-spike",
           .value = option_value(o.trainer.guards.gradient.spike),
           .text = "largest norm of any parameter's gradient, in multiples of its running mean; 0: any"},
          {.name = "guard-warn",
           .value = option_value(o.trainer.guards.gradient.warn),
           .text = "fraction of --guard-norm and --guard-spike above which a gradient is logged",
           .high = 1,
           .above_low = true},
      }};
}

}  // namespace lockstep::train
