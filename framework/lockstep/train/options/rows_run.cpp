#include <algorithm>
#include <iterator>
#include <vector>

#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

// Where a run writes, and from what it begins.
std::vector<OptionRow> folder_rows(Options& o) {
  return {
      {.name = "output",
       .value = option_value(o.output),
       .argument = "DIR",
       .text = "folder for checkpoints, logs and metrics",
       .per_node = true,
       .effect = Effect::None},
      {.name = "resume",
       .value = option_value(o.checkpoints.resume),
       .argument = "auto|FILE",
       .text = "continue from the newest valid checkpoint in --output (auto), or from FILE",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
      {.name = "change-bits",
       .value = option_value(o.checkpoints.change_bits),
       .text = "resume from a checkpoint that was made with another --bits; the promise then begins anew",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
      {.name = "evaluate-only",
       .value = option_value(o.evaluate_only),
       .text = "train nothing: evaluate the weights of --resume or --weights on all evaluation sets, print the "
               "results and add them to OUTPUT/evaluations.jsonl",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
      {.name = "predict",
       .value = option_value(o.predict),
       .argument = "FILE",
       .text = "train nothing: write predictions with the weights of --resume or --weights to FILE (a new .h5, "
               ".npz, .npy or .csv), for all samples of --files, or else those of the evaluation set",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
      {.name = "onnx",
       .value = option_value(o.onnx),
       .argument = "FILE",
       .text = "train nothing: write the model that predicts, with the weights of --resume or --weights, as ONNX or "
               "(NAME.c) C source, "
               "for batches of --batch-size samples; on one rank",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
      {.name = "json",
       .value = option_value(o.json),
       .text =
           "with --evaluate-only, --predict or --onnx: print the result as JSON on standard output, a line for each "
           "evaluation set or file, and nothing else there",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
      {.name = "onnx-example",
       .value = option_value(o.onnx_example),
       .argument = "DIR",
       .text = "with --onnx: a folder for the first samples of --files, or of the evaluation set, as the model "
               "takes them, and its output, as ONNX lays out its test data",
       .resume = Resume::Unsaid,
       .effect = Effect::None},
  };
}

std::vector<OptionRow> checkpoint_rows(Options& o) {
  return {
      {.name = "checkpoint-every",
       .value = option_value(o.checkpoints.every_epochs),
       .text = "epochs between checkpoints; 0: none",
       .effect = Effect::None},
      {.name = "checkpoint-every-steps",
       .value = option_value(o.checkpoints.every_steps),
       .text = "updates between checkpoints; 0: none",
       .effect = Effect::None},
      {.name = "checkpoint-every-minutes",
       .value = option_value(o.checkpoints.every_minutes),
       .text = "minutes between checkpoints, by rank 0's clock, in addition to the others; 0: none",
       .effect = Effect::None},
      {.name = "keep",
       .value = option_value(o.checkpoints.keep),
       .argument = "WHICH",
       .text = "checkpoints that stay: last:K (the newest; 0: all), every:N (steps that are multiples of N, "
               "for ever), best:NAME (loss or a metric, of those written right after an evaluation), with "
               "commas between; a number K is last:K",
       .effect = Effect::None},
      {.name = "full-tables-every",
       .value = option_value(o.checkpoints.full_tables_every),
       .text = "of N checkpoints in a row one has all rows of sparse tables, the others have the rows that "
               "changed since",
       .low = 1,
       .effect = Effect::None},
      {.name = "table-copy-mb",
       .value = option_value(o.checkpoints.table_copy_mb),
       .text = "MiB of sparse tables that rank 0 copies in memory for a checkpoint; larger ones are written "
               "to a file without a name before training goes on",
       .high = 1e9,
       .effect = Effect::None},
  };
}

std::vector<OptionRow> evaluation_rows(Options& o) {
  return {
      {.name = "eval-every",
       .value = option_value(o.eval_every),
       .text = "epochs between evaluations; 0: never",
       .effect = Effect::Order},
      {.name = "patience",
       .value = option_value(o.patience.evaluations),
       .text = "end the run after N evaluations in a row without progress of --patience-metric; 0: never",
       .effect = Effect::Order},
      {.name = "patience-metric",
       .value = option_value(o.patience.metric),
       .argument = "NAME",
       .text = "the evaluations' metric that --patience looks at, or loss",
       .effect = Effect::Order},
  };
}

// The output of a run beside checkpoints.
std::vector<OptionRow> record_rows(Options& o) {
  return {
      {.name = "log-every",
       .value = option_value(o.log_every),
       .text = "updates between lines of progress and metrics; 0: only at the end of an epoch",
       .effect = Effect::None},
      {.name = "quiet",
       .value = option_value(o.quiet),
       .text = "print only warnings and errors on the console",
       .per_node = true,
       .effect = Effect::None},
      {.name = "log-level",
       .value = option_value(o.logging.level),
       .text = "lowest level of messages on the console and in log files: trace, debug, info, warning, error "
               "or off; from LOCKSTEP_LOG_LEVEL unless given",
       .per_node = true,
       .effect = Effect::None,
       .variable = "LOCKSTEP_LOG_LEVEL"},
      {.name = "log-per-host",
       .value = option_value(o.logging.per_host),
       .text = "log files in a folder for each host: OUTPUT/logs/HOST/rank-NNNN.log",
       .effect = Effect::None},
      {.name = "log-rank-loss",
       .value = option_value(o.logging.rank_loss),
       .text = "each rank also writes the loss of its own samples to its log file, every --log-every updates",
       .effect = Effect::None},
      {.name = "logger",
       .value = option_value(o.logging.records),
       .argument = "WHICH",
       .text = "files of records in addition to metrics.jsonl: none, or some of dllogger (dllogger.json, in the "
               "form of NVIDIA's DLLogger), tensorboard (tensorboard/, event files of TensorBoard), csv "
               "(metrics.csv) and prometheus (metrics.prom), with commas between",
       .effect = Effect::None},
  };
}

std::vector<OptionRow> profile_rows(Options& o) {
  return {
      {.name = "profile",
       .value = option_value(o.profile),
       .text = "print at the end where the steps' time went, compared with the machine's peak",
       .per_node = true,
       .effect = Effect::None},
      {.name = "trace",
       .value = option_value(o.trace.file),
       .argument = "FILE",
       .text = "write the computing, waiting and sending of all ranks in some steps to FILE, for Perfetto",
       .effect = Effect::None},
      {.name = "trace-steps",
       .value = option_value(o.trace.steps),
       .text = "updates in the trace, after the first three",
       .low = 1,
       .high = 1e4,
       .effect = Effect::None},
  };
}

}  // namespace

OptionGroup run_rows(Options& o) {
  OptionGroup group{.heading = "Run", .rows = folder_rows(o)};
  for (const auto& part : {checkpoint_rows, evaluation_rows, record_rows, profile_rows}) {
    std::vector<OptionRow> rows = part(o);
    std::ranges::move(rows, std::back_inserter(group.rows));
  }
  return group;
}

}  // namespace lockstep::train
