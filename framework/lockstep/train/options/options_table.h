// The one table of training options: command line, help, range checks and JSON all walk it, so none can forget an
// option. Internal to train/options/options.cpp and train/options/options_check.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/train/options/options.h"

namespace lockstep::train {

inline constexpr double kMaxCount = 1e15;  // exact in a double, and far from the end of int64_t in products with ranks

struct Field {
  const char* name;                    // without dashes
  const char* value;                   // what stands after the name in --help; "" for flags
  const char* text;                    // what it does, with its unit
  double low = 0, high = kMaxCount;    // numbers must lie in [low, high], ...
  bool above_low = false;              // ... or in (low, high]
  bool below_high = false;             // ... or in [low, high)
  std::vector<std::string> choices{};  // texts must be one of these
  bool per_node = false;               // in no checkpoint; ranks may differ in it, but for --output
  enum class Number : std::uint8_t { Exact, Rounded } number = Number::Exact;  // Rounded: to the type of the weights
};

// Which numbers a field takes: "at least 0 and below 1"; "": any from 0 on.
std::string range_text(const Field& field);
// What needs neither ranks nor data: throws Error for a value out of its field's range, or that is no choice of it.
void check_ranges(const Options& options);

// visit.group(heading), then visit(field, member) for each of its options, in the order of --help. O is Options or
// const Options.
template <class O, class Visit>
void visit_data(O& o, Visit& visit) {
  visit.group("Data");
  visit({.name = "dataset", .value = "NAME", .text = "a data set of the program's"}, o.dataset);
  visit({.name = "data-dir", .value = "DIR", .text = "folder of the data set's files", .per_node = true}, o.data_dir);
  visit({.name = "augment", .value = "", .text = "random crops and flips in training, or not"}, o.augment);
  visit({.name = "limit-train", .value = "N", .text = "train on the first N samples; 0: all"}, o.limit_train);
  visit({.name = "limit-eval", .value = "N", .text = "evaluate on the first N samples; 0: all (of synthetic, 128)"},
        o.limit_eval);
}

template <class O, class Visit>
void visit_training(O& o, Visit& visit) {
  visit.group("Training");
  visit({.name = "epochs", .value = "N", .text = "passes over the training data; 0: until --max-steps"}, o.epochs);
  visit({.name = "max-steps",
         .value = "N",
         .text = "stop after N updates, where the learning-rate schedule ends too; 0: when the epochs are done"},
        o.max_steps);
  visit({.name = "batch-size",
         .value = "N",
         .text = "samples per rank and micro-batch; 0: --global-batch says",
         .high = 1e8},
        o.batch_size);
  visit({.name = "global-batch",
         .value = "N",
         .text = "samples per update over all ranks; 0: --batch-size times ranks times --accumulate",
         .high = 1e12},
        o.global_batch);
  visit({.name = "remainder",
         .value = "WHAT",
         .text = "the last samples of an epoch, if they fill no global batch: keep (a smaller update) or drop",
         .choices = {"keep", "drop"}},
        o.remainder);
  visit({.name = "label-smoothing",
         .value = "X",
         .text = "part of the target spread over all classes",
         .high = 1,
         .below_high = true,
         .number = Field::Number::Rounded},
        o.label_smoothing);
  visit({.name = "seed",
         .value = "N",
         .text = "of initial weights, order of samples, augmentation and dropout",
         .high = std::numeric_limits<double>::max()},
        o.seed);
  visit({.name = "weights",
         .value = "FILE",
         .text = "start from these weights (a weights file or a checkpoint); a run that is resumed has its own"},
        o.weights);
  visit({.name = "precision",
         .value = "TYPE",
         .text = "f32, f64, or bf16: products, convolutions and the values between them in bf16, weights, sums and the "
                 "optimizer in f32. A processor without bf16 instructions falls back to f32; bf16-emulated insists",
         .choices = {"f32", "f64", "bf16", "bf16-emulated"}},
        o.precision);
  visit({.name = "conv-math",
         .value = "WHAT",
         .text = "convolutions: fast (Winograd where it pays, rounding more) or exact (direct sums)",
         .choices = {"fast", "exact"}},
        o.conv_math);
  visit({.name = "recompute",
         .value = "WHAT",
         .text = "what backward computes again instead of keeping it: none, norms (batch norm with ReLU: cheap), or "
                 "blocks (all within a residual block: a third more time, least memory)",
         .choices = {"none", "norms", "blocks"}},
        o.recompute);
  visit({.name = "autotune",
         .value = "",
         .text = "measure on rank 0 which kernel is fastest for each node, once for a processor and shape; bits depend "
                 "on the outcome"},
        o.autotune);
}

template <class O, class Visit>
void visit_optimiser(O& o, Visit& visit) {
  visit.group("Optimiser");
  visit({.name = "optimizer", .value = "NAME", .text = "sgd, adam or adamw", .choices = {"sgd", "adam", "adamw"}},
        o.optimizer);
  visit({.name = "lr",
         .value = "X",
         .text = "peak learning rate per update; another optimizer than the default has its own: sgd 0.1, adam and "
                 "adamw 0.001",
         .above_low = true,
         .number = Field::Number::Rounded},
        o.lr);
  visit({.name = "momentum",
         .value = "X",
         .text = "of sgd",
         .high = 1,
         .below_high = true,
         .number = Field::Number::Rounded},
        o.momentum);
  visit({.name = "nesterov", .value = "", .text = "Nesterov's momentum in sgd"}, o.nesterov);
  visit({.name = "weight-decay",
         .value = "X",
         .text = "L2 coefficient; with adamw decoupled, per unit of rate",
         .number = Field::Number::Rounded},
        o.weight_decay);
  visit({.name = "no-decay-norm-bias", .value = "", .text = "leave biases and norm parameters out of the decay"},
        o.no_decay_norm_bias);
  visit({.name = "beta1",
         .value = "X",
         .text = "decay of adam's first moment",
         .high = 1,
         .below_high = true,
         .number = Field::Number::Rounded},
        o.beta1);
  visit({.name = "beta2",
         .value = "X",
         .text = "decay of adam's second moment",
         .high = 1,
         .below_high = true,
         .number = Field::Number::Rounded},
        o.beta2);
  visit({.name = "eps",
         .value = "X",
         .text = "added to the root of adam's second moment",
         .above_low = true,
         .number = Field::Number::Rounded},
        o.eps);
}

template <class O, class Visit>
void visit_rate(O& o, Visit& visit) {
  visit.group("Learning rate");
  visit({.name = "schedule",
         .value = "NAME",
         .text = "constant, step, cosine or one-cycle, over the whole run",
         .choices = {"constant", "step", "cosine", "one-cycle"}},
        o.schedule);
  visit({.name = "warmup-epochs", .value = "X", .text = "epochs of linear rise to --lr"}, o.warmup_epochs);
  visit(
      {.name = "min-lr", .value = "X", .text = "learning rate at which cosine ends", .number = Field::Number::Rounded},
      o.min_lr);
  visit({.name = "step-epochs", .value = "X", .text = "epochs between two steps of the rate", .above_low = true},
        o.step_epochs);
  visit({.name = "step-gamma", .value = "X", .text = "factor of each step of the rate", .above_low = true},
        o.step_gamma);
  visit({.name = "milestones",
         .value = "X",
         .text = "epochs at which the rate steps, with commas between, in place of --step-epochs",
         .above_low = true},
        o.milestones);
  visit({.name = "cycle-rise",
         .value = "X",
         .text = "part of the run in which one-cycle rises",
         .high = 1,
         .above_low = true,
         .below_high = true},
        o.cycle_rise);
  visit({.name = "cycle-start", .value = "X", .text = "one-cycle starts at --lr divided by X", .low = 1},
        o.cycle_start);
  visit({.name = "cycle-end", .value = "X", .text = "one-cycle ends at its start divided by X", .low = 1}, o.cycle_end);
  visit({.name = "scale-lr", .value = "", .text = "multiply --lr by global batch / --scale-lr-batch"}, o.scale_lr);
  visit({.name = "scale-lr-batch", .value = "N", .text = "samples per update that --lr is meant for", .low = 1},
        o.scale_lr_batch);
}

template <class O, class Visit>
void visit_ranks(O& o, Visit& visit) {
  visit.group("Ranks");
  visit({.name = "accumulate", .value = "N", .text = "micro-batches per rank and update", .low = 1, .high = 1e5},
        o.accumulate);
  visit({.name = "shards",
         .value = "S",
         .text = "cut each global batch into S parts, at most one per sample, for the same bits at any number of ranks "
                 "up to S; "
                 "0: one per rank",
         .high = 1e6},
        o.shards);
  visit({.name = "sync-bn",
         .value = "",
         .text = "batch norms normalise by the statistics of all ranks' samples of a micro-batch, not each rank's own"},
        o.sync_bn);
  visit({.name = "threads",
         .value = "N",
         .text = "compute threads per rank; 0: as many as it has cores, with --shards 1, as bits depend on it",
         .high = 4096,
         .per_node = true},
        o.threads);
  visit({.name = "loaders",
         .value = "N",
         .text = "threads per rank that prepare batches; 0: none; -1: chosen from the cores",
         .low = -1,
         .high = 4096,
         .per_node = true},
        o.loaders);
}

template <class O, class Visit>
void visit_communication(O& o, Visit& visit) {
  visit.group("Communication");
  visit({.name = "allreduce",
         .value = "PATH",
         .text = "how gradients are summed: shared (in a node's memory), hierarchical (that, and messages between "
                 "nodes), messages (between all ranks), all of which give the same bits; mpi (MPI_Allreduce); auto "
                 "takes the first that can be and says why",
         .choices = {"auto", "shared", "hierarchical", "messages", "mpi"}},
        o.allreduce);
  visit({.name = "sharing-domain",
         .value = "WHAT",
         .text = "ranks that exchange through memory and share weights: those of a node, or those bound to the same "
                 "numa domain of it",
         .choices = {"node", "numa"}},
        o.sharing_domain);
  visit({.name = "no-share-weights",
         .value = "",
         .text = "every rank keeps weights and optimizer state of its own; else ranks of a node share one copy, of "
                 "which each updates a part"},
        o.no_share_weights);
  visit({.name = "shard-optimizer",
         .value = "",
         .text = "optimizer state once per job, a part on each rank (ZeRO stage 1)"},
        o.shard_optimizer);
  visit({.name = "wire",
         .value = "TYPE",
         .text = "what gradients are rounded to at every edge of the sum, in a node and on the network: half the bytes "
                 "for bf16 and f16; additions stay f32",
         .choices = {"f32", "bf16", "f16"}},
        o.wire);
  visit({.name = "overlap",
         .value = "WHO",
         .text = "who moves messages on while gradients are computed: thread, steps (the computation, between its "
                 "steps), or auto: what is faster in the first steps",
         .choices = {"auto", "thread", "steps"}},
        o.overlap);
  visit({.name = "bucket-mb",
         .value = "X",
         .text = "MiB of gradients that are reduced together; 0: from the network's latency and bandwidth",
         .high = 4096},
        o.bucket_mb);
  visit({.name = "clip-norm",
         .value = "X",
         .text = "largest norm of the gradient, all parameters together; 0: any",
         .number = Field::Number::Rounded},
        o.clip_norm);
  visit({.name = "topk",
         .value = "X",
         .text = "exchange only this part of the gradient, its largest elements, and keep the rest for later steps; 0: "
                 "all",
         .high = 1},
        o.topk);
  visit({.name = "local-steps",
         .value = "K",
         .text = "each rank trains K steps by itself, then weights and optimizer state are averaged (local SGD); 1: "
                 "gradients are averaged "
                 "in every step",
         .low = 1,
         .high = 1e6},
        o.local_steps);
}

template <class O, class Visit>
void visit_run(O& o, Visit& visit) {
  visit.group("Run");
  visit({.name = "output", .value = "DIR", .text = "folder for checkpoints, logs and metrics", .per_node = true},
        o.output);
  visit({.name = "resume",
         .value = "auto|FILE",
         .text = "go on from the newest whole checkpoint in --output, or from FILE"},
        o.resume);
  visit({.name = "checkpoint-every", .value = "N", .text = "epochs between checkpoints; 0: none"}, o.checkpoint_every);
  visit({.name = "checkpoint-every-steps", .value = "N", .text = "updates between checkpoints; 0: none"},
        o.checkpoint_every_steps);
  visit({.name = "checkpoint-every-minutes",
         .value = "X",
         .text = "minutes between checkpoints, by rank 0's clock, beside the others; 0: none"},
        o.checkpoint_every_minutes);
  visit(
      {.name = "keep",
       .value = "WHICH",
       .text = "checkpoints that stay: last:K (the newest; 0: all), every:N (steps that are multiples of N, for ever), "
               "best:accuracy or best:loss (of those written right after an evaluation), with commas between; a "
               "number K is last:K"},
      o.keep);
  visit({.name = "eval-every", .value = "N", .text = "epochs between evaluations; 0: never"}, o.eval_every);
  visit({.name = "log-every",
         .value = "N",
         .text = "updates between lines of progress and metrics; 0: ends of epochs only"},
        o.log_every);
  visit({.name = "quiet", .value = "", .text = "warnings and errors only on the console", .per_node = true}, o.quiet);
  visit({.name = "profile",
         .value = "",
         .text = "at the end, a table of where the steps' time went, against what the machine can do",
         .per_node = true},
        o.profile);
  visit({.name = "trace",
         .value = "FILE",
         .text = "write what every rank computes, waits for and sends in some steps as one file for Perfetto"},
        o.trace);
  visit(
      {.name = "trace-steps", .value = "N", .text = "updates in --trace, after the first three", .low = 1, .high = 1e4},
      o.trace_steps);
}

template <class O, class Visit>
void visit_safety(O& o, Visit& visit) {
  visit.group("Safety");
  visit({.name = "time-limit",
         .value = "TIME",
         .text = "write a checkpoint and end with status 75 when this time since the start is about to be over: "
                 "02:00:00, 1-12:00:00, 90m, 2h; auto: the end of the Slurm job, if there is one; none",
         .per_node = true},
        o.time_limit);
  visit(
      {.name = "time-margin",
       .value = "TIME",
       .text = "stop this long before --time-limit; auto: 30 s (a tenth of a limit below 5 min), three of the slowest "
               "recent steps and two checkpoints",
       .per_node = true},
      o.time_margin);
  visit(
      {.name = "stall-timeout",
       .value = "SECONDS",
       .text = "name a rank that has not moved for so long, with its host, step, process state and stack; ten times as "
               "long while it compiles or saves; 0: do not watch"},
      o.stall_timeout);
  visit({.name = "abort-timeout",
         .value = "SECONDS",
         .text = "end the job with status 76 when a rank has not moved for so long; 0: never"},
        o.abort_timeout);
  visit(
      {.name = "hash-every",
       .value = "N",
       .text = "updates between lines of OUTPUT/hashes.jsonl, a hash of every tensor by which `lockstep compare` finds "
               "where two runs part; 0: none"},
      o.hash_every);
  visit({.name = "verify-every",
         .value = "N",
         .text = "updates between looks at hashes of weights and optimizer state in memory, taken when they were "
                 "written; 0: never"},
        o.verify_every);
  visit({.name = "compare-every",
         .value = "N",
         .text = "updates between comparisons of the copies of weights that nodes (or ranks) have; 0: never"},
        o.compare_every);
  visit({.name = "on-mismatch",
         .value = "WHAT",
         .text = "when memory is not what was written or copies differ: repair (from a copy that is right, else "
                 "rollback), rollback (load the newest checkpoint and go on, else stop), or stop (status 77)",
         .choices = {"repair", "rollback", "stop"}},
        o.on_mismatch);
  visit({.name = "guard-action",
         .value = "WHAT",
         .text = "when the loss is not finite, or the gradient past a limit: log, skip the update (also where the "
                 "gradient alone is not finite), or stop (status 77)",
         .choices = {"log", "skip", "stop"}},
        o.guard_action);
  visit({.name = "guard-norm", .value = "X", .text = "largest norm of the gradient before clipping; 0: any"},
        o.guard_norm);
  visit({.name = "guard-spike",
         .value = "X",
         .text = "largest norm of any parameter's gradient, in multiples of its running mean; 0: any"},
        o.guard_spike);
  visit({.name = "guard-warn",
         .value = "X",
         .text = "part of --guard-norm and --guard-spike from which a gradient is logged",
         .high = 1,
         .above_low = true},
        o.guard_warn);
}

template <class O, class Visit>
void visit_options(O& options, Visit&& visit) {
  visit_data(options, visit);
  visit_training(options, visit);
  visit_optimiser(options, visit);
  visit_rate(options, visit);
  visit_ranks(options, visit);
  visit_communication(options, visit);
  visit_run(options, visit);
  visit_safety(options, visit);
}

}  // namespace lockstep::train
