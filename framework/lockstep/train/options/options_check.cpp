#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <type_traits>

#include "lockstep/checkpoint/retention.h"
#include "lockstep/core/error.h"
#include "lockstep/train/monitor/deadline.h"
#include "lockstep/train/options/options.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {
namespace {

constexpr const char* kPlace = "options";
constexpr std::int64_t kMostSamples = 1'000'000'000'000;  // of an update, as --global-batch has it
constexpr auto kMostUpdates = static_cast<std::int64_t>(kMaxCount);
constexpr double kMostRateSteps = 1e6;

std::string low_text(const Field& field) {
  return fmt::format("{} {}", field.above_low ? "above" : "at least", field.low);
}
std::string whole_range(const Field& field) {
  return fmt::format("{} and {} {}", low_text(field), field.below_high ? "below" : "at most", field.high);
}

std::string expectation(const Field& field, double value) {
  const bool low_alone = field.high >= kMaxCount && value <= field.high;
  return "a number " + (low_alone ? low_text(field) : whole_range(field));
}

bool is_within(const Field& field, double value) {
  const bool above = field.above_low ? value > field.low : value >= field.low;
  return above && (field.below_high ? value < field.high : value <= field.high);
}

double in_f32(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return value > kLargest ? std::numeric_limits<double>::infinity() : static_cast<double>(static_cast<float>(value));
}

struct CheckRanges {
  const char* rounds_to = nullptr;  // --precision, where weights are f32

  void group(const char*) {}
  void operator()(const Field&, bool) {}
  void operator()(const Field& field, const std::string& member) {
    if (field.choices.empty()) return;
    check(std::find(field.choices.begin(), field.choices.end(), member) != field.choices.end(), kPlace,
          "--{} is '{}', expected one of {}", field.name, member, joined(field.choices, ", "));
  }
  void operator()(const Field& field, const std::vector<double>& member) {
    for (double value : member) (*this)(field, value);
    check(std::adjacent_find(member.begin(), member.end(), std::greater_equal<>{}) == member.end(), kPlace,
          "--{} is {}, expected each to be larger than the one before", field.name, joined(member, ","));
  }
  template <class T>
  void operator()(const Field& field, const T& member) {
    const double value = static_cast<double>(member);
    check(std::isfinite(value) && is_within(field, value), kPlace, "--{} is {}, expected {}", field.name, member,
          expectation(field, value));
    if (field.number != Field::Number::Rounded || rounds_to == nullptr) return;
    const double rounded = in_f32(value);
    check(std::isfinite(rounded) && (value == 0 || rounded != 0) && is_within(field, rounded), kPlace,
          "--{} is {}, which is {} in f32, the type of weights with --precision {}; expected {} that stays so "
          "when it is rounded, or --precision f64",
          field.name, member, rounded, rounds_to, expectation(field, value));
  }
};

// The largest int64_t where the product is larger.
std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}

std::int64_t batch_of_all_ranks(const Options& o, int ranks) {
  return saturating_product(saturating_product(o.batch_size, ranks), o.accumulate);
}

void check_batch(const Options& o, int world_size) {
  check(o.batch_size > 0 || o.global_batch > 0, kPlace,
        "--batch-size and --global-batch are both 0, expected one of them to say how many samples an update takes");
  const std::int64_t product = batch_of_all_ranks(o, world_size);
  check(product <= kMostSamples, kPlace,
        "--batch-size {} times {} ranks times --accumulate {} is more than {} samples an update, expected fewer",
        o.batch_size, world_size, o.accumulate, kMostSamples);
  check(o.batch_size == 0 || o.global_batch == 0 || product == o.global_batch, kPlace,
        "--global-batch is {}, but --batch-size {} times {} ranks times --accumulate {} makes {}; give one of the two, "
        "or make them agree",
        o.global_batch, o.batch_size, world_size, o.accumulate, product);
  check(o.shards == 0 || o.shards >= world_size, kPlace,
        "--shards is {} with {} ranks, expected at least one shard per rank (or 0, for none)", o.shards, world_size);
  check(
      !o.sync_bn || o.shards == 0 || o.shards == world_size, kPlace,
      "--sync-bn with --shards {} and {} ranks, expected as many shards as ranks (or 0, for none): shards of one rank "
      "run one after the other",
      o.shards, world_size);
  const std::int64_t batch = global_batch(o, world_size);
  check(o.shards <= batch, kPlace,
        "--shards is {} with a global batch of {} samples, expected at most one shard per sample (or 0, for none)",
        o.shards, batch);
  const std::int64_t parts = std::max<std::int64_t>(o.shards, world_size);
  check(
      o.accumulate == 1 || o.accumulate <= batch / parts, kPlace,
      "--accumulate is {} with a global batch of {} samples in {} parts (ranks or shards), expected at most {}, for a "
      "sample in each micro-batch",
      o.accumulate, batch, parts, std::max<std::int64_t>(1, batch / parts));
  check(o.limit_train == 0 || o.limit_train >= batch, kPlace,
        "--limit-train is {}, expected at least one global batch of {} samples", o.limit_train, batch);
}

void check_rates(const Options& o) {
  check(!o.nesterov || o.optimizer == "sgd", kPlace, "--nesterov with --optimizer {}, expected sgd", o.optimizer);
  check(!o.nesterov || o.momentum > 0, kPlace, "--nesterov with --momentum {}, expected a momentum above 0",
        o.momentum);
  check(o.epochs == 0 || o.warmup_epochs <= static_cast<double>(o.epochs), kPlace,
        "--warmup-epochs is {}, expected at most --epochs {}", o.warmup_epochs, o.epochs);
  check(o.schedule != "one-cycle" || o.warmup_epochs == 0, kPlace,
        "--warmup-epochs is {} with --schedule one-cycle, expected 0: the cycle has a rise of its own (--cycle-rise)",
        o.warmup_epochs);
  check(o.schedule != "cosine" || o.min_lr <= o.lr, kPlace, "--min-lr is {}, expected at most --lr {}", o.min_lr, o.lr);
}

// Names in the output folder that a run writes itself, and where earlier runs' files go.
bool is_of_a_run(const std::string& name) {
  const std::array<std::string, 7> own{"checkpoints", "logs",  "metrics",       "hashes",
                                       "run.json",    ".lock", "supervisor.log"};
  return std::ranges::any_of(own,
                             [&](const std::string& known) { return name == known || name.starts_with(known + "."); });
}

void check_trace(const Options& o) {
  if (o.trace.empty()) return;
  const auto full = [](const std::string& path) { return std::filesystem::absolute(path).lexically_normal(); };
  const std::filesystem::path inside = full(o.trace).lexically_relative(full(o.output) / "");
  check(inside.empty() || !is_of_a_run(inside.begin()->string()), kPlace,
        "--trace is {}, where the run writes a file of its own, expected another name", o.trace);
}

void check_run(const Options& o) {
  check(o.epochs > 0 || o.max_steps > 0, kPlace,
        "--epochs and --max-steps are both 0, expected one of them to end the run");
  const bool best = checkpoint::parse_retention(o.keep, kPlace).best != checkpoint::Retention::Best::None;
  check(!best || (o.eval_every > 0 && o.checkpoint_every > 0), kPlace,
        "--keep {}: the best of those written right after an evaluation, expected --eval-every and --checkpoint-every "
        "above 0",
        o.keep);
  if (o.time_limit != "auto" && o.time_limit != "none") parse_duration(o.time_limit, "time-limit");
  if (o.time_margin != "auto") {
    const double margin = parse_duration(o.time_margin, "time-margin");
    const bool limited = o.time_limit != "auto" && o.time_limit != "none";
    check(!limited || margin < parse_duration(o.time_limit, "time-limit"), kPlace,
          "--time-margin is {} with --time-limit {}, expected less: the run would stop before its first step",
          o.time_margin, o.time_limit);
  }
  check(o.abort_timeout == 0 || o.abort_timeout >= o.stall_timeout, kPlace,
        "--abort-timeout is {}, expected 0 or at least --stall-timeout {}", o.abort_timeout, o.stall_timeout);
  check(!o.output.empty(), kPlace, "--output is empty, expected a folder for checkpoints, logs and metrics");
  check_trace(o);
}

// What replaces the reduction tree replaces it alone.
void check_communication(const Options& o) {
  const bool own = o.allreduce == "mpi" || o.topk > 0 || o.local_steps > 1;
  check((o.allreduce == "mpi" ? 1 : 0) + (o.topk > 0 ? 1 : 0) + (o.local_steps > 1 ? 1 : 0) <= 1, kPlace,
        "of --allreduce mpi, --topk and --local-steps one at most can be asked for");
  check(!own || (!o.shard_optimizer && o.wire == "f32"), kPlace,
        "--shard-optimizer and --wire go with Lockstep's own paths, not with --allreduce mpi, --topk or --local-steps");
  check(!own || o.shards == 0, kPlace,
        "--shards {}: the same bits at any number of ranks need the reduction tree, which --allreduce mpi, --topk and "
        "--local-steps replace",
        o.shards);
  check(o.topk == 0 || o.precision != "f64", kPlace, "--topk is for f32 gradients, not for --precision f64");
  check(o.local_steps == 1 || o.clip_norm == 0, kPlace,
        "--clip-norm {}: with --local-steps no rank knows the whole gradient", o.clip_norm);
}

void check_safety(const Options& o) {
  check(o.local_steps == 1 || (o.guard_norm == 0 && o.guard_spike == 0), kPlace,
        "--guard-norm {} and --guard-spike {}: with --local-steps no rank knows the whole gradient", o.guard_norm,
        o.guard_spike);
}

}  // namespace

std::string range_text(const Field& field) {
  if (field.high < kMaxCount) return whole_range(field);
  return field.above_low || field.low != 0 ? low_text(field) : "";
}

void check_ranges(const Options& options) {
  visit_options(options, CheckRanges{.rounds_to = options.precision == "f64" ? nullptr : options.precision.c_str()});
}

void validate(const Options& options, int world_size) {
  check(world_size >= 1, kPlace, "the world size is {}, expected at least 1", world_size);
  check_ranges(options);
  check_batch(options, world_size);
  check_rates(options);
  check_communication(options);
  check_run(options);
  check_safety(options);
}

void validate_data(const Options& options, int world_size, std::int64_t samples) {
  const std::int64_t batch = global_batch(options, world_size);
  check(batch <= samples, kPlace, "{} is {}{}, expected at most the {} training samples of {}",
        options.global_batch > 0 ? "--global-batch" : "--batch-size",
        options.global_batch > 0 ? options.global_batch : options.batch_size,
        options.global_batch > 0 ? "" : fmt::format(" on {} ranks (a global batch of {})", world_size, batch), samples,
        options.dataset);
  const std::int64_t steps = samples / batch + (options.remainder == "keep" && samples % batch > 0 ? 1 : 0);
  check(options.epochs <= kMostUpdates / steps, kPlace,
        "--epochs is {} with {} updates in each, expected at most {} epochs; --epochs 0 --max-steps N trains N updates",
        options.epochs, steps, kMostUpdates / steps);
  const std::int64_t all = options.epochs > 0 ? options.epochs * steps : options.max_steps;
  const std::int64_t updates = options.max_steps > 0 ? std::min(all, options.max_steps) : all;
  const double epochs = static_cast<double>(updates) / static_cast<double>(steps);
  check(options.schedule != "step" || !options.milestones.empty() || epochs / options.step_epochs <= kMostRateSteps,
        kPlace, "--step-epochs is {} in a run of {:.6g} epochs, expected at most {} steps of the rate",
        options.step_epochs, epochs, kMostRateSteps);
}

std::int64_t global_batch(const Options& options, int ranks) {
  return options.global_batch > 0 ? options.global_batch : batch_of_all_ranks(options, ranks);
}

}  // namespace lockstep::train
