// The table of all training options, with one row per option. Command line, option files, help, range checks, JSON,
// resuming and the comparison of runs all use it, so none of them can miss an option. To add an option, add a member to
// Options and a row to the group of its subject (options/rows_*.cpp).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/options/option_value.h"
#include "lockstep/train/options/options.h"

namespace lockstep::train {

inline constexpr const char* kOptionsSite = "options";  // the site that errors of options name
inline constexpr double kMaxCount = 1e15;  // exact in a double; products with the number of ranks fit int64_t

// The condition under which a run may resume from a checkpoint with another value of the option.
enum class Resume : std::uint8_t {
  Noted,           // always; the difference is logged
  Unsaid,          // always; the difference is not logged
  SameSamples,     // if the training set has the same number of samples
  SameInEpoch,     // at the start of an epoch
  SameWithShards,  // without --shards, which guarantee equal bits
  Never,
};

// The effect of a value on the results of a run, for `lockstep compare`.
enum class Effect : std::uint8_t {
  Results,  // changes samples, weights or rates
  Order,    // changes where and when sums are computed; with equal --shards, changes no result
  None,     // changes no result: files, logs, checks
};

enum class Rounding : std::uint8_t { Exact, ToWeights };  // ToWeights: the value is used in the type of the weights

// The data sets that read an option, unless DatasetEntry::ignores has its name. A program whose catalogue has none of
// them does not offer the option. Images: neither fields nor streams; ImageSets: DatasetEntry::takes_images; Fields:
// data::DatasetKind::Fields; FieldsAndImageSets: both kinds; Labels: all kinds, as any may have classes.
enum class ForData : std::uint8_t { Any, Images, ImageSets, Fields, FieldsAndImageSets, Labels, Streams };

struct OptionRow {
  std::string name;                     // without dashes
  OptionValue value;                    // the variable; its value before parsing is the default
  std::string argument = {};            // the word after the name in --help, for texts, paths and lists: argument_of()
  std::string text = {};                // the effect of the option, with the unit of its value
  double low = 0, high = kMaxCount;     // numbers must lie in [low, high], ...
  bool above_low = false;               // ... or in (low, high]
  bool below_high = false;              // ... or in [low, high)
  bool rises = false;                   // of several numbers each must be above the one before it
  std::vector<std::string> names = {};  // a text must be one of these, "*.onnx" standing for files; empty: any
  bool has_negative = false;            // a flag that also has --no-NAME
  bool per_node = false;                // not in checkpoints; may differ between ranks, except --output
  Rounding rounding = Rounding::Exact;
  Resume resume = Resume::Noted;
  std::string reason = {};  // the reason for `resume`, in the message that refuses a checkpoint
  Effect effect = Effect::Results;
  bool shapes_model = false;  // another value may change the model's tensors
  ForData data = ForData::Any;
  std::string variable = {};  // environment variable that gives the value if neither command line nor file does
};

struct OptionGroup {
  std::string heading;  // heading in --help
  std::vector<OptionRow> rows;
};

// Return the rows in the order of --help; the rows point into `options`.
std::vector<OptionGroup> option_groups(Options& options);
std::vector<OptionRow> option_rows(Options& options);

OptionGroup data_rows(Options& options);
OptionGroup field_rows(Options& options);
OptionGroup stream_rows(Options& options);
OptionGroup sample_rows(Options& options);
OptionGroup image_rows(Options& options);
OptionGroup augment_rows(Options& options);
OptionGroup training_rows(Options& options);
OptionGroup tuning_rows(Options& options);
OptionGroup trial_rows(Options& options);
OptionGroup optimiser_rows(Options& options);
OptionGroup rate_rows(Options& options);
OptionGroup rank_rows(Options& options);
OptionGroup communication_rows(Options& options);
OptionGroup run_rows(Options& options);
OptionGroup safety_rows(Options& options);

// Returns whether the data set reads the option, and whether some set of the catalogue does; true for an empty one.
bool is_for(const OptionRow& row, const data::DatasetEntry& dataset);
bool is_for(const OptionRow& row, data::Catalogue datasets);
// Throws Error for a value other than the `usual` one of the row's number that the chosen data set does not read.
void check_read(std::span<const OptionRow> rows, std::span<const std::string> usual, data::Catalogue datasets,
                std::string_view chosen);
// Puts a program's data sets into the row of --dataset, for --help and errors: the table of options knows none.
void offer(data::Catalogue datasets, OptionRow& row);
// Returns the word after the option's name in --help: N, a whole number; X, a number; NAME, one of a few names; of
// other texts, paths and lists of numbers the row's own word, or TEXT, or X,...; "" for flags.
std::string argument_of(const OptionRow& row);
// Returns the row's present value as the command line has it; "none" for an empty text.
std::string value_text(const OptionRow& row);
// Returns the names that a row accepts, for a text or an enumeration; empty: any value.
std::vector<std::string> names_of(const OptionRow& row);
// Describes the numbers that a row accepts: "at least 0 and below 1"; "": any number from 0.
std::string range_text(const OptionRow& row);
// Returns "--optimizer is 'muon', expected one of sgd, adam, adamw", with the name that was probably intended.
std::string unknown_name(const OptionRow& row, std::string_view given);
// Throws Error for a value that is out of its row's range or none of its names. `precision` is the type of the weights,
// for rows whose values are rounded to it. Needs neither ranks nor data.
void check_ranges(std::span<const OptionRow> rows, Precision precision);

}  // namespace lockstep::train
