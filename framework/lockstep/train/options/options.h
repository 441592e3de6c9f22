// The options that every training program has: values, and the checks that need no data and no other rank. A part that
// is read by one component is that component's own struct, so a value is set once and handed down. The command line is
// in train/options/command_line.h, names, help and ranges in train/options/options_table.h.
#pragma once

#include <cstdint>
#include <string>

#include "lockstep/data/catalogue.h"
#include "lockstep/data/sampler.h"
#include "lockstep/optim/rule_options.h"
#include "lockstep/optim/schedule_options.h"
#include "lockstep/train/step/trainer_options.h"

namespace lockstep::train {

// BF16 falls back to F32 where a processor has no such instructions; BF16Emulated does not.
enum class Precision : std::uint8_t { F32, F64, BF16, BF16Emulated };

// Ranks that exchange through memory and share weights: those of a node, or those bound to the same NUMA domain of it.
enum class SharingDomain : std::uint8_t { Node, Numa };

struct CheckpointOptions {
  std::string resume{};           // "": a new run; "auto": from the newest checkpoint; or a file
  std::int64_t every_epochs = 1;  // 0: none
  std::int64_t every_steps = 0;   // updates; 0: none
  double every_minutes = 0;       // 0: none
  std::string keep = "3";         // checkpoint/retention.h

  bool any() const { return every_epochs > 0 || every_steps > 0 || every_minutes > 0; }
};

struct TraceOptions {
  std::string file{};      // "": none
  std::int64_t steps = 5;  // updates in it
};

// Durations as train/monitor/deadline.h reads them.
struct TimeOptions {
  std::string limit = "auto";   // auto: Slurm's; or none
  std::string margin = "auto";  // auto: learnt from steps and checkpoints
};

// Seconds without a sign of life from a rank; 0: never.
struct StallLimits {
  double report = 60;  // until the rank is named
  double abort = 300;  // and until the job is ended
};

// Rates are per update (one global batch); a count of 0 means what the comment says.
struct Options {
  data::DatasetOptions dataset = {};  // of the program's catalogue; its seed is `seed`
  bool augment = false;

  std::int64_t epochs = 10;       // 0: until max_steps
  std::int64_t max_steps = 0;     // updates; 0: until epochs are done
  std::int64_t batch_size = 32;   // samples per rank and micro-batch; 0: global_batch says
  std::int64_t global_batch = 0;  // samples per update over all ranks; 0: batch_size * ranks * accumulate
  data::Remainder remainder = data::Remainder::Keep;  // of an epoch's last samples that fill no global batch
  double label_smoothing = 0;
  std::uint64_t seed = 1;
  std::string weights{};  // file of weights to start from; "": initial values
  Precision precision = Precision::F32;

  optim::RuleOptions optimizer = {};
  optim::ScheduleOptions rate = {};
  double bucket_mb = 0;         // MiB of gradients that are reduced together; 0: chosen
  TrainerOptions trainer = {};  // what follows from the options above, and from ranks, is settled by the session

  int threads = 0;   // compute threads per rank; 0: the cores it may use
  int loaders = -1;  // threads per rank that prepare batches; -1: chosen from the cores
  SharingDomain sharing_domain = SharingDomain::Node;

  std::string output = "runs";
  CheckpointOptions checkpoints = {};
  std::int64_t eval_every = 1;  // epochs; 0: never
  std::int64_t patience = 0;    // evaluations without a lower loss until the run ends; 0: it does not
  std::int64_t log_every = 50;  // updates; 0: ends of epochs only
  bool quiet = false;
  bool profile = false;
  TraceOptions trace = {};
  std::int64_t hash_every = 0;  // updates between hashes of all tensors; 0: none
  TimeOptions time = {};
  StallLimits stall = {};
  bool preflight = true;  // look at hosts, cores, memory and clocks before the first step
};

// Throws Error on values out of range and options that contradict each other or the number of ranks.
void validate(const Options& options, int world_size);
// Throws Error unless one global batch fits into the training data, `samples` after --limit-train.
void validate_data(const Options& options, int world_size, std::int64_t samples);

// Samples per update over all ranks.
std::int64_t global_batch(const Options& options, int ranks);

}  // namespace lockstep::train
