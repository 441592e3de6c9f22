// The checks of validate(): options among themselves.
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "lockstep/checkpoint/retention.h"
#include "lockstep/core/error.h"
#include "lockstep/data/array_file.h"
#include "lockstep/train/monitor/deadline.h"
#include "lockstep/train/options/choices.h"
#include "lockstep/train/options/options_table.h"
#include "lockstep/train/report/record_kinds.h"

namespace lockstep::train {
namespace {

constexpr std::int64_t kMostSamples = 1'000'000'000'000;  // limit of samples per update, as for --global-batch

// Returns the product, or the largest int64_t if the product is larger.
std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

std::int64_t batch_of_all_ranks(const Options& o, int ranks) {
  return saturating_product(saturating_product(o.batch_size, ranks), o.trainer.accumulate);
}

void check_batch(const Options& o, int world_size) {
  const std::int64_t shards = o.trainer.shards, accumulate = o.trainer.accumulate;
  check(o.batch_size > 0 || o.global_batch > 0, kOptionsSite,
        "--batch-size and --global-batch are both 0, expected the samples of an update in one of them");
  const std::int64_t product = batch_of_all_ranks(o, world_size);
  check(product <= kMostSamples, kOptionsSite,
        "--batch-size {} times {} ranks times --accumulate {} is more than {} samples an update, expected fewer",
        o.batch_size, world_size, accumulate, kMostSamples);
  check(o.batch_size == 0 || o.global_batch == 0 || product == o.global_batch, kOptionsSite,
        "--global-batch is {}, but --batch-size {} times {} ranks times --accumulate {} makes {}; give one of the two, "
        "or make them agree",
        o.global_batch, o.batch_size, world_size, accumulate, product);
  check(shards == 0 || shards >= world_size, kOptionsSite,
        "--shards is {} with {} ranks, expected at least one shard per rank (or 0, for none)", shards, world_size);
  const bool sync = o.trainer.compile.synchronisation.all_norms;
  check(
      !sync || shards == 0 || shards == world_size, kOptionsSite,
      "--sync-bn with --shards {} and {} ranks, expected as many shards as ranks (or 0, for none): shards of one rank "
      "run one after the other",
      shards, world_size);
  const std::int64_t batch = global_batch(o, world_size);
  check(shards <= batch, kOptionsSite,
        "--shards is {} with a global batch of {} samples, expected at most one shard per sample (or 0, for none)",
        shards, batch);
  const std::int64_t parts = std::max<std::int64_t>(shards, world_size);
  check(
      accumulate == 1 || accumulate <= batch / parts, kOptionsSite,
      "--accumulate is {} with a global batch of {} samples in {} parts (ranks or shards), expected at most {}, for a "
      "sample in each micro-batch",
      accumulate, batch, parts, std::max<std::int64_t>(1, batch / parts));
  check(o.dataset.limit_train == 0 || o.dataset.limit_train >= batch, kOptionsSite,
        "--limit-train is {}, expected at least one global batch of {} samples", o.dataset.limit_train, batch);
}

void check_rates(const Options& o, int world_size) {
  using Kind = optim::ScheduleOptions::Kind;
  const bool nesterov = o.optimizer.sgd.nesterov;
  check(!nesterov || o.optimizer.rule == optim::Rule::Sgd, kOptionsSite, "--nesterov with --optimizer {}, expected sgd",
        choice_name(o.optimizer.rule));
  check(!nesterov || o.optimizer.sgd.momentum > 0, kOptionsSite,
        "--nesterov with --momentum {}, expected a momentum above 0", o.optimizer.sgd.momentum);
  const optim::ScheduleOptions& rate = o.rate;
  const bool trains = o.purpose() == data::Purpose::Train;  // else nothing reads the rates
  check(!trains || o.epochs == 0 || rate.warmup_epochs <= static_cast<double>(o.epochs), kOptionsSite,
        "--warmup-epochs is {}, expected at most --epochs {}", rate.warmup_epochs, o.epochs);
  check(rate.kind != Kind::OneCycle || rate.warmup_epochs == 0, kOptionsSite,
        "--warmup-epochs is {} with --schedule one-cycle, expected 0: the cycle has a rise of its own (--cycle-rise)",
        rate.warmup_epochs);
  check(rate.kind != Kind::Plateau || o.eval_every > 0, kOptionsSite,
        "--schedule plateau with --eval-every 0, expected evaluations to look at: --eval-every above 0");
  if (!trains || !rate.has_minimum()) return;
  const std::int64_t batch = global_batch(o, world_size);
  const double peak = optim::peak_rate(rate, batch);
  check(rate.minimum <= peak, kOptionsSite, "--min-lr is {}, expected at most {}", rate.minimum,
        rate.scaled ? formatted("{}, which --scale-lr makes of --lr {} for a global batch of {} samples", peak,
                                rate.peak, batch)
                    : formatted("--lr {}", rate.peak));
}

// Returns whether a name in the output folder belongs to a file of the run, or to an earlier run's file moved aside.
bool is_of_a_run(const std::string& name) {
  const std::array<std::string, 12> own{"checkpoints",    "logs",     "metrics", "hashes",      "run.json",    ".lock",
                                        "supervisor.log", "dllogger", "find-lr", "evaluations", "tensorboard", "facts"};
  return std::ranges::any_of(own,
                             [&](const std::string& known) { return name == known || name.starts_with(known + "."); });
}

void check_trace(const Options& o) {
  if (o.trace.file.empty()) return;
  const auto full = [](const std::string& path) { return std::filesystem::absolute(path).lexically_normal(); };
  const std::filesystem::path inside = full(o.trace.file).lexically_relative(full(o.output) / "");
  check(inside.empty() || !is_of_a_run(inside.begin()->string()), kOptionsSite,
        "--trace is {}, where the run writes a file of its own, expected another name", o.trace.file);
}

void check_run(const Options& o) {
  record_kinds(o.logging.records);
  check(o.epochs > 0 || o.max_steps > 0, kOptionsSite,
        "--epochs and --max-steps are both 0, expected one of them to end the run");
  check(o.patience.evaluations == 0 || o.eval_every > 0, kOptionsSite,
        "--patience is {} with --eval-every 0, expected evaluations to look at: --eval-every above 0",
        o.patience.evaluations);
  const bool best = !checkpoint::parse_retention(o.checkpoints.keep, kOptionsSite).best.empty();
  check(!best || (o.eval_every > 0 && o.checkpoints.every_epochs > 0), kOptionsSite,
        "--keep {} needs checkpoints that are written right after an evaluation, expected --eval-every and "
        "--checkpoint-every above 0",
        o.checkpoints.keep);
  parse_run_time(o.time.limit, o.time.margin);
  check(o.stall.abort == 0 || o.stall.abort >= o.stall.report, kOptionsSite,
        "--abort-timeout is {}, expected 0 or at least --stall-timeout {}", o.stall.abort, o.stall.report);
  check(!o.output.empty(), kOptionsSite, "--output is empty, expected a folder for checkpoints, logs and metrics");
  check_trace(o);
}

void check_averages(const Options& o) {
  const optim::AverageOptions& average = o.trainer.average;
  check(average.ema == 0 || average.swa_start == 0, kOptionsSite,
        "--ema is {} and --swa-start {}, expected one of the two: evaluations have one average", average.ema,
        average.swa_start);
  check(average.swa_start <= o.epochs || o.epochs == 0, kOptionsSite,
        "--swa-start is {}, expected at most --epochs {}: no weights would join the mean", average.swa_start, o.epochs);
}

// Without the gradient of all ranks there are no norms of it.
void check_norms(const Options& o, int world_size) {
  const bool local = o.trainer.parallel.local_steps > 1, topk = o.trainer.parallel.topk > 0;
  const bool adapts = o.optimizer.rule == optim::Rule::Lars || o.optimizer.rule == optim::Rule::Lamb;
  check(!local || !adapts, kOptionsSite,
        "--optimizer {} with --local-steps, expected another: no rank has the whole gradient then",
        choice_name(o.optimizer.rule));
  check(!local || o.trainer.update.clip_layer_norm == 0, kOptionsSite,
        "--clip-layer-norm is {} with --local-steps, expected 0: no rank has the whole gradient then",
        o.trainer.update.clip_layer_norm);
  if (!o.trainer.noise_scale) return;
  check(!local && !topk, kOptionsSite, "--noise-scale with --local-steps or --topk, expected the whole gradient");
  check(std::max<std::int64_t>(o.trainer.shards, world_size) >= 2 && global_batch(o, world_size) >= 2, kOptionsSite,
        "--noise-scale with {} rank and --shards {}, expected at least 2 of one of them: it compares their gradients",
        world_size, o.trainer.shards);
}

void check_streams(const Options& o) {
  const data::ReservoirOptions &given = o.stream.reservoir, usual;
  check(given.capacity > 0 || (given.replay == usual.replay && given.policy == usual.policy), kOptionsSite,
        "--replay and --reservoir-policy have no effect without --reservoir, expected the samples that it keeps");
}

void check_trials(const Options& o) {
  freeze_patterns(o.tuning);
  rate_groups(o.tuning);
  decay_groups(o.tuning);
  check(!o.tuning.replace_head || !o.weights.empty(), kOptionsSite,
        "--replace-head without --weights, expected the file whose other layers are taken");
  const TrialOptions usual;
  check(o.trial.find_lr || (o.trial.lr_range == usual.lr_range && o.trial.lr_steps == usual.lr_steps), kOptionsSite,
        "--find-lr-range and --find-lr-steps have no effect without --find-lr, expected it beside them");
  if (!o.trial.find_lr) return;
  check(o.purpose() == data::Purpose::Train, kOptionsSite, "--find-lr with {}, expected one of them: the test trains",
        o.evaluate_only     ? "--evaluate-only"
        : o.predict.empty() ? "--onnx"
                            : "--predict");
  check(o.trial.lr_range.size() == 2, kOptionsSite,
        "--find-lr-range is {}, expected two rising rates: the first and the last", joined(o.trial.lr_range, ","));
  check(
      o.checkpoints.resume.empty(), kOptionsSite,
      "--find-lr with --resume {}, expected one of the two; --weights FILE begins the test from a checkpoint's weights",
      o.checkpoints.resume);
}

// A run that trains nothing needs weights.
void check_purpose(const Options& o, int world_size) {
  check(o.onnx_example.empty() || !o.onnx.empty(), kOptionsSite,
        "--onnx-example has no effect without --onnx, expected --onnx too");
  check(o.onnx.empty() || world_size == 1, kOptionsSite,
        "--onnx on {} ranks, expected one: one file is written, of whole tensors", world_size);
  check(!o.json || o.purpose() != data::Purpose::Train, kOptionsSite,
        "--json has no effect without --evaluate-only, --predict or --onnx, expected one of them; a run that trains "
        "writes its numbers to OUTPUT/metrics.jsonl");
  if (o.purpose() == data::Purpose::Train) return;
  const std::string_view use = o.predict.empty() ? "--onnx" : "--predict";
  check(!o.evaluate_only || o.purpose() == data::Purpose::Evaluate, kOptionsSite,
        "--evaluate-only and {} are given, expected one of the two", use);
  const std::string_view option = o.evaluate_only ? "--evaluate-only" : use;
  check(!o.weights.empty() || !o.checkpoints.resume.empty(), kOptionsSite,
        "{} needs weights, expected --weights with a checkpoint, a file of weights or the folder of a run, or --resume",
        option);
  check(o.weights.empty() || o.checkpoints.resume.empty(), kOptionsSite,
        "--weights is {} and --resume {} with {}, expected one of the two: the weights are those of one file",
        o.weights, o.checkpoints.resume, option);
  if (o.predict.empty()) return;
  data::check_array_file(o.predict, kOptionsSite);
  check(
      o.dataset.samples.unreadable == data::Unreadable::Stop, kOptionsSite,
      "--unreadable is replace with --predict, expected stop: the file would have the prediction of another sample in "
      "the row of one that cannot be read");
}

// Portable bits need kernels that follow from shapes alone, in types whose products all processors round alike.
void check_bits(const Options& o) {
  if (o.trainer.compile.kernels.bits != kernels::KernelOptions::Bits::Portable) return;
  check(!o.trainer.autotune, kOptionsSite,
        "--bits portable with --autotune, expected one of the two: measured choices differ between machines");
  check(o.precision == Precision::F32 || o.precision == Precision::F64, kOptionsSite,
        "--bits portable with --precision {}, expected f32 or f64: processors round products of bf16 differently",
        choice_name(o.precision));
  check(o.trainer.parallel.path != ParallelOptions::Path::Mpi, kOptionsSite,
        "--bits portable with --allreduce mpi, expected another path: sums of MPI_Allreduce depend on the MPI library");
}

// At most one option may replace the reduction tree.
void check_communication(const Options& o) {
  const ParallelOptions& p = o.trainer.parallel;
  const bool mpi = p.path == ParallelOptions::Path::Mpi, topk = p.topk > 0, local = p.local_steps > 1;
  const bool replaced = mpi || topk || local;
  check(int{mpi} + int{topk} + int{local} <= 1, kOptionsSite,
        "more than one of --allreduce mpi, --topk and --local-steps is set, expected at most one");
  check(!replaced || (!p.shard_optimizer && p.wire == parallel::Wire::Exact), kOptionsSite,
        "--shard-optimizer and --wire work only with Lockstep's own paths, not with --allreduce mpi, --topk or "
        "--local-steps");
  check(!replaced || o.trainer.shards == 0, kOptionsSite,
        "--shards {}: the same bits at any number of ranks need the reduction tree, which --allreduce mpi, --topk and "
        "--local-steps replace",
        o.trainer.shards);
  check(!topk || o.precision != Precision::F64, kOptionsSite, "--topk is for f32 gradients, not for --precision f64");
  check(!local || o.trainer.clip_norm == 0, kOptionsSite,
        "--clip-norm is {} with --local-steps, expected 0: no rank has the whole gradient then", o.trainer.clip_norm);
  const parallel::GradientGuardOptions& limits = o.trainer.guards.gradient;
  check(!local || (limits.norm == 0 && limits.spike == 0), kOptionsSite,
        "--guard-norm is {} and --guard-spike {} with --local-steps, expected 0: no rank has the whole gradient then",
        limits.norm, limits.spike);
  check(!local || o.trainer.guards.action != GuardAction::Skip, kOptionsSite,
        "--guard-action is skip with --local-steps, expected stop or log: skip also looks at the gradient, and no rank "
        "has the whole gradient then");
}

}  // namespace

void validate(const Options& options, int world_size) {
  check(world_size >= 1, kOptionsSite, "the world size is {}, expected at least 1", world_size);
  Options checked = options;
  check_ranges(option_rows(checked), options.precision);
  check_batch(options, world_size);
  check_rates(options, world_size);
  check_communication(options);
  check_bits(options);
  check_averages(options);
  check_norms(options, world_size);
  check_run(options);
  check_trials(options);
  check_streams(options);
  check_purpose(options, world_size);
}

std::int64_t global_batch(const Options& options, int ranks) {
  return options.global_batch > 0 ? options.global_batch : batch_of_all_ranks(options, ranks);
}

}  // namespace lockstep::train
