// The options that every training program has, their command line, and the checks that need no data and no other rank.
// A program sets its own defaults in the struct, calls add_options, adds options of its own to the same CLI::App,
// parses, and validates once it knows its world size. Errors name the option, its value, and what was expected.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace lockstep::train {

// Rates are per update (one global batch); a count of 0 means what the comment says.
struct Options {
  // Data
  std::string dataset{};  // a name of the program's catalogue (data/catalogue.h)
  std::string data_dir{};
  bool augment = false;
  std::int64_t limit_train = 0, limit_eval = 0;  // samples; 0: all

  // Training
  std::int64_t epochs = 10;        // 0: until max_steps
  std::int64_t max_steps = 0;      // updates; 0: until epochs are done
  std::int64_t batch_size = 32;    // samples per rank and micro-batch; 0: global_batch says
  std::int64_t global_batch = 0;   // samples per update over all ranks; 0: batch_size * ranks * accumulate
  std::string remainder = "keep";  // keep | drop: what becomes of an epoch's last samples that fill no global batch
  double label_smoothing = 0;
  std::uint64_t seed = 1;
  std::string weights{};          // file of weights to start from; "": initial values
  std::string precision = "f32";  // f32 | f64 | bf16 | bf16-emulated

  // Kernels
  std::string conv_math = "fast";   // fast | exact
  std::string recompute = "norms";  // none | norms | blocks
  bool autotune = false;

  // Optimiser
  std::string optimizer = "sgd";  // sgd | adam | adamw
  double lr = 0.1;                // the peak rate, before scale_lr
  double momentum = 0.9;          // sgd
  bool nesterov = false;          // sgd
  double weight_decay = 0;
  bool no_decay_norm_bias = false;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  // adam, adamw

  // Learning rate
  std::string schedule = "cosine";  // constant | step | cosine | one-cycle
  double warmup_epochs = 0;
  double min_lr = 0;                                           // cosine: the rate it ends at
  double step_epochs = 30, step_gamma = 0.1;                   // step: times gamma every step_epochs
  std::vector<double> milestones{};                            // step: or at these epochs
  double cycle_rise = 0.3, cycle_start = 25, cycle_end = 1e4;  // one-cycle: rising part of the run, divisors of lr
  bool scale_lr = false;                                       // lr * global batch / scale_lr_batch
  std::int64_t scale_lr_batch = 256;

  // Ranks
  std::int64_t accumulate = 1;  // micro-batches per rank and update
  std::int64_t shards = 0;      // leaves of the reduction tree; 0: one per rank
  bool sync_bn = false;         // batch norms normalise by all ranks' samples
  int threads = 0;              // compute threads per rank; 0: the cores it may use
  int loaders = -1;             // threads per rank that prepare batches; -1: chosen from the cores

  // Communication
  std::string allreduce = "auto";       // auto | shared | hierarchical | messages | mpi
  std::string sharing_domain = "node";  // node | numa
  bool no_share_weights = false, shard_optimizer = false;
  std::string wire = "f32";      // f32 | bf16 | f16
  std::string overlap = "auto";  // auto | thread | steps
  double bucket_mb = 0;          // MiB of gradients that are reduced together; 0: chosen
  double clip_norm = 0;          // 0: none
  double topk = 0;               // part of the gradient that is exchanged; 0: all, by --allreduce
  int local_steps = 1;           // steps between averages of weights; 1: gradients are averaged

  // Run
  std::string output = "runs";
  std::string resume{};                                           // "", "auto", or a checkpoint file
  std::int64_t checkpoint_every = 1, checkpoint_every_steps = 0;  // 0: none
  double checkpoint_every_minutes = 0;                            // 0: none
  std::string keep = "3";                                         // checkpoint/retention.h
  std::int64_t eval_every = 1;                                    // epochs; 0: never
  std::int64_t log_every = 50;                                    // updates; 0: ends of epochs only
  bool quiet = false;
  bool profile = false;
  std::string trace{};           // file; "": none
  std::int64_t trace_steps = 5;  // updates in it

  // Safety
  std::string time_limit = "auto";   // a duration, auto (Slurm's) or none
  std::string time_margin = "auto";  // a duration, or auto (learnt from steps and checkpoints)
  double stall_timeout = 60;         // seconds without a sign of life from a rank, until it is named; 0: never
  double abort_timeout = 300;        // and until the job is ended; 0: never
  std::int64_t hash_every = 0;       // updates between hashes of all tensors; 0: none
  std::int64_t verify_every = 1, compare_every = 100;  // updates; 0: never
  std::string on_mismatch = "repair";                  // repair | rollback | stop
  std::string guard_action = "stop";                   // log | skip | stop
  double guard_norm = 0, guard_spike = 0;              // 0: any
  double guard_warn = 0.5;                             // part of a limit
};

// Adds every option, grouped, and --config FILE. What `options` holds now are the defaults; it must outlive the App.
void add_options(CLI::App& app, Options& options);

struct ParseResult {
  bool proceed = true;
  int exit_code = 0;    // for main() where proceed is false: 0 after --help or --version, 2 after an error
  std::string message;  // the error, for a caller that wants the ranks to agree on it; on no rank is it empty then
};

// Parses, and settles what depends on which options were given: --batch-size replaces a program's default of
// --global-batch and the other way round, a change of optimizer without --lr brings that optimizer's usual rate, and an
// option that the others leave without effect is an error. Help, version and errors are printed by rank 0 alone, once.
ParseResult parse(CLI::App& app, Options& options, int argc, const char* const* argv, bool is_rank_zero);
ParseResult parse(CLI::App& app, Options& options, int argc, const char* const* argv, bool is_rank_zero,
                  std::ostream& out, std::ostream& err);

// Throws Error on values out of range and options that contradict each other or the number of ranks.
void validate(const Options& options, int world_size);
// Throws Error unless one global batch fits into the training data, `samples` after --limit-train.
void validate_data(const Options& options, int world_size, std::int64_t samples);

// Samples per update over all ranks.
std::int64_t global_batch(const Options& options, int ranks);

// Options by the names of the command line, without the dashes: the text of a JSON object.
std::string to_json(const Options& options);

// Text that must be the same on all ranks and that checkpoints keep: all options but those a node may set for itself
// (data-dir, threads, loaders, quiet, profile, time-limit, time-margin) and output, on which ranks agree but which is
// no part of a run; with the program's own added, which `program` holds as a JSON object ({"depth": 20}). Keys are
// sorted.
std::string canonical(const Options& options, std::string_view program = "{}");

// Each option in which two canonical texts differ, as "--lr: 0.1 there, 0.2 here"; `there` and `here` say whose.
std::vector<std::string> differences(std::string_view canonical_there, std::string_view canonical_here,
                                     std::string_view there, std::string_view here);

}  // namespace lockstep::train
