// The options of every training program: their values, and the checks that need neither data nor other ranks. Options
// that one component reads are that component's own struct, so a value is set once and passed on. The command line is
// in train/options/command_line.h; names, help and ranges are in train/options/options_table.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lockstep/core/log.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/data/sampler.h"
#include "lockstep/optim/rule_options.h"
#include "lockstep/optim/schedule_options.h"
#include "lockstep/train/options/tuning_options.h"
#include "lockstep/train/prepare/trainer_options.h"

namespace lockstep::train {

// The type of arithmetic. BF16 falls back to F32 on processors without bf16 instructions; BF16Emulated does not.
enum class Precision : std::uint8_t { F32, F64, BF16, BF16Emulated };

// The domain of ranks that exchange through memory and share weights: a node, or a NUMA domain of it.
enum class SharingDomain : std::uint8_t { Node, Numa };

struct CheckpointOptions {
  std::string resume{};           // "": a new run; "auto": from the newest checkpoint; or the path of a file
  std::int64_t every_epochs = 1;  // epochs between checkpoints; 0: none
  std::int64_t every_steps = 0;   // updates between checkpoints; 0: none
  double every_minutes = 0;       // minutes between checkpoints; 0: none
  bool change_bits = false;       // a resume may have other KernelOptions::bits than the checkpoint
  std::string keep = "3";         // the files that stay, as parse_retention() reads it (checkpoint/retention.h)
  // One of this number of checkpoints has all rows of sparse tables; each other one has the rows that changed since.
  std::int64_t full_tables_every = 1;
  std::int64_t table_copy_mb = 256;  // MiB of tables that are copied in memory; larger ones go to a file

  bool any() const { return every_epochs > 0 || every_steps > 0 || every_minutes > 0; }
};

// The end of a run whose evaluations stop improving.
struct PatienceOptions {
  std::int64_t evaluations = 0;  // without progress, after which the run ends; 0: no such limit
  std::string metric = "loss";   // the metric whose progress that is, or the loss
};

struct TraceOptions {
  std::string file{};      // path of the trace; "": none
  std::int64_t steps = 5;  // updates in the trace
};

// Texts as parse_run_time() reads them (train/monitor/deadline.h).
struct TimeOptions {
  std::string limit = "auto";   // auto: the end of the Slurm job; none: no limit
  std::string margin = "auto";  // auto: estimated from steps and checkpoints
};

// Limits, in seconds, of the time in which a rank does not move; 0: never.
struct StallLimits {
  double report = 60;  // then the watchdog names the rank
  double abort = 300;  // then the watchdog ends the job
};

struct StreamingOptions {
  std::int64_t steps_per_epoch = 100;  // updates in an epoch of a stream, which has no end that is known
  data::ReservoirOptions reservoir = {};
};

struct LoggingOptions {
  LogLevel level = LogLevel::Info;  // the lowest level of messages on the console and in log files
  bool per_host = false;            // log files in a folder for each host
  bool rank_loss = false;           // each rank logs the loss of its own samples
  std::string records = "none";     // files beside metrics.jsonl, as record_kinds() reads them
};

// All options. Learning rates are per update (one global batch).
struct Options {
  StreamingOptions stream = {};  // of runs whose samples come from a producer (data/stream_source.h)
  data::DatasetOptions dataset =
      {};  // a data set of the program's catalogue; its seed and type are set from those below

  std::int64_t epochs = 10;       // passes over the training data; 0: until max_steps
  std::int64_t max_steps = 0;     // limit of updates; 0: until all epochs are done
  std::int64_t batch_size = 32;   // samples per rank and micro-batch; 0: global_batch determines it
  std::int64_t global_batch = 0;  // samples per update over all ranks; 0: batch_size * ranks * accumulate
  data::Remainder remainder = data::Remainder::Keep;  // for an epoch's last samples, if they fill no global batch
  double label_smoothing = 0;
  std::uint64_t seed = 1;
  std::string weights{};  // file of the first weights; "": initial values of the model
  TuningOptions tuning = {};
  TrialOptions trial = {};
  Precision precision = Precision::F32;

  optim::RuleOptions optimizer = {};
  optim::ScheduleOptions rate = {};
  double bucket_mb = 0;         // MiB of gradients that are reduced together; 0: chosen from the network's speed
  TrainerOptions trainer = {};  // the session sets values that follow from ranks and from the options above

  int threads = 0;   // compute threads per rank; 0: one per core that the rank may use
  int loaders = -1;  // threads per rank that prepare batches; -1: chosen from the number of cores
  SharingDomain sharing_domain = SharingDomain::Node;

  std::string output = "runs";  // folder of checkpoints, logs and metrics
  CheckpointOptions checkpoints = {};
  std::int64_t eval_every = 1;  // epochs between evaluations; 0: never
  PatienceOptions patience = {};
  std::int64_t log_every = 50;  // updates between lines of progress; 0: only at the end of an epoch
  bool quiet = false;
  LoggingOptions logging = {};
  bool profile = false;
  TraceOptions trace = {};
  std::int64_t hash_every = 0;  // updates between hashes of all tensors; 0: none
  TimeOptions time = {};
  StallLimits stall = {};
  bool preflight = true;  // look at hosts, cores, memory and clocks before the first step

  // A run that trains nothing: with the weights that checkpoints.resume or `weights` names, it evaluates, or predicts
  // and writes the predictions to the file `predict` (data/array_file.h), or the model that predicts to the file
  // `onnx`, or both; "": it does not.
  bool evaluate_only = false;
  std::string predict{}, onnx{}, onnx_example{};  // the last: a folder for an input of the model and its output
  bool json = false;                              // the result is printed as JSON, and nothing else on standard output

  // A program's default of rate.warmup_epochs that the command line shortened to `epochs`; 0: it shortened none.
  double usual_warm_up = 0;
  // The environment variables that gave values, by the names of their options; the command line sets it.
  std::map<std::string, std::string> from_environment = {};

  data::Purpose purpose() const {
    const bool predicts = !predict.empty() || !onnx.empty();
    return predicts ? data::Purpose::Predict : evaluate_only ? data::Purpose::Evaluate : data::Purpose::Train;
  }
};

// Throws Error for a value out of its range, and for options that contradict each other or the number of ranks.
void validate(const Options& options, int world_size);
// Throws Error unless one global batch fits into the training data, which has `samples` samples after --limit-train.
void validate_data(const Options& options, int world_size, std::int64_t samples);
// The same for a stream; throws Error for options that a stream cannot have.
void validate_stream(const Options& options, int world_size);

// Returns the number of samples per update over all ranks.
std::int64_t global_batch(const Options& options, int ranks);

}  // namespace lockstep::train
