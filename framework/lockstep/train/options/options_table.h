// The one table of training options, a row each. Command line, option files, help, range checks, JSON,
// resuming and the comparison of runs all walk it, so none of them can forget an option. To add an
// option, add a member to Options and a row to the group of its subject (options/rows_*.cpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/options/option_value.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

inline constexpr double kMaxCount = 1e15;  // exact in a double, and far from the end of int64_t in products with ranks

// When a run may go on from a checkpoint although the option's value differs.
enum class Resume : std::uint8_t {
  Noted,           // always; the difference is written to the log
  Unsaid,          // always, and it is no difference worth a line
  SameSamples,     // where the training set has as many samples as before
  SameInEpoch,     // at the begin of an epoch
  SameWithShards,  // without --shards, which promise equal bits
  Never,
};

// The effect of a value on the results of a run, for `lockstep compare`.
enum class Effect : std::uint8_t {
  Results,  // samples, weights or rates
  Order,    // with equal --shards nothing: only where and when sums are computed
  None,     // nothing: files, logs, checks
};

enum class Rounding : std::uint8_t { Exact, ToWeights };  // ToWeights: the value is used in the type of the weights

struct OptionRow {
  std::string name;                     // without dashes
  OptionValue value;                    // where it is kept; its value before parsing is the default
  std::string argument = {};            // the word after the name in --help; "" for flags
  std::string text = {};                // the effect of the option, with the unit of its value
  double low = 0, high = kMaxCount;     // numbers must lie in [low, high], ...
  bool above_low = false;               // ... or in (low, high]
  bool below_high = false;              // ... or in [low, high)
  std::vector<std::string> names = {};  // a text must be one of these; empty: any (an enumeration has its own)
  bool has_negative = false;            // a flag that also has --no-NAME
  bool per_node = false;                // in no checkpoint; ranks may differ in it, but for --output
  Rounding rounding = Rounding::Exact;
  Resume resume = Resume::Noted;
  std::string reason = {};  // of `resume`, for the message that refuses a checkpoint
  Effect effect = Effect::Results;
  bool shapes_model = false;  // another value may make other tensors
};

struct OptionGroup {
  std::string heading;  // in --help
  std::vector<OptionRow> rows;
};

// In the order of --help. The rows point into `options`.
std::vector<OptionGroup> option_groups(Options& options);
std::vector<OptionRow> option_rows(Options& options);

OptionGroup data_rows(Options& options);
OptionGroup training_rows(Options& options);
OptionGroup optimiser_rows(Options& options);
OptionGroup rate_rows(Options& options);
OptionGroup rank_rows(Options& options);
OptionGroup communication_rows(Options& options);
OptionGroup run_rows(Options& options);
OptionGroup safety_rows(Options& options);

// The values that a row takes: those of a text or an enumeration by name; empty: any.
std::vector<std::string> names_of(const OptionRow& row);
// Which numbers a row takes: "at least 0 and below 1"; "": any from 0 on.
std::string range_text(const OptionRow& row);
// "--optimizer is 'lion', expected one of sgd, adam, adamw", and the name that was probably meant.
std::string unknown_name(const OptionRow& row, std::string_view given);
// Needs neither ranks nor data: throws Error for a value out of its row's range, or that is none of its names. The
// precision is that of the weights, for rows that are rounded to it.
void check_ranges(std::span<const OptionRow> rows, Precision precision);

}  // namespace lockstep::train
