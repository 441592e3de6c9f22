#include "data/datasets/click_checks.h"

#include <string_view>

#include "data/datasets/click_bags.h"
#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kClickChecksSite = "options";

bool is_text(std::string_view set) { return set == "criteo" || set == "ratings" || set == "csv"; }

}  // namespace

void check_click_options(const data::DatasetOptions& o, const ClickSetOptions& set) {
  const data::FieldOptions& f = o.fields;
  check(f.eval_fraction < 1 || o.purpose != data::Purpose::Train, kClickChecksSite,
        "--eval-fraction is {}, expected less than 1: 1 is for --evaluate-only", f.eval_fraction);
  check(set.hash_ids == 0 || set.vocabulary == 0, kClickChecksSite,
        "--hash-ids {} and --vocabulary {}, expected one of the two", set.hash_ids, set.vocabulary);
  check((set.hash_ids == 0 || set.hash_ids >= 2) && (set.vocabulary == 0 || set.vocabulary >= 2), kClickChecksSite,
        "--hash-ids is {} and --vocabulary {}, expected 0 (none) or at least 2 rows", set.hash_ids, set.vocabulary);
  check(set.negatives >= 0 && set.negatives <= 65536 && set.negative_exponent >= 0 && set.negative_exponent <= 10,
        kClickChecksSite, "--negatives is {} and --negative-exponent {}, expected 0 to 65536 and 0 to 10",
        set.negatives, set.negative_exponent);
  check(set.negatives == 0 || set.vocabulary == 0, kClickChecksSite,
        "--negatives {} with --vocabulary, whose ids have no rows before they are seen; expected --hash-ids, or ids as "
        "they are",
        set.negatives);
  check(set.bag_separator.size() == 1, kClickChecksSite, "--bag-separator is '{}', expected one character",
        set.bag_separator);
  for (const ClickBag& bag : parse_bags(set.bags)) {
    check(
        bag.counts.empty() || !is_text(o.name), kClickChecksSite,
        "--bags has counts={} for the field '{}' with the data set {}, expected it with hdf5, arrays or records: a bag "
        "of a text file is as long as its cell",
        bag.counts, bag.field, o.name);
    check(bag.offsets.empty() || o.name == "hdf5", kClickChecksSite,
          "--bags has offsets={} for the field '{}' with the data set {}, expected it with hdf5", bag.offsets,
          bag.field, o.name);
  }
  check(o.mean.empty() || scaling_of(f) == data::Scaling::MeanStd, kClickChecksSite,
        "--mean and --std with --normalise {}, expected standard or log", name_of(f.normalise));
}

void check_click_files(const data::DatasetOptions& o, const ClickSetOptions& set, bool fixed_columns) {
  check_click_options(o, set);
  check(!o.fields.files.empty(), kClickChecksSite,
        "--files is missing, expected files of {}, as in --files 'day_*.txt'", o.name);
  if (fixed_columns) {
    check(set.ids.empty(), kClickChecksSite,
          "--ids is for other data sets than {}, whose columns are known; expected none", o.name);
    return;
  }
  check(!set.ids.empty(), kClickChecksSite, "--ids is missing, expected the columns of ids, as in --ids user,item");
  check(o.purpose == data::Purpose::Predict || !o.fields.label.empty(), kClickChecksSite,
        "--label is missing, expected the column that is predicted");
}

void check_click_records(const data::DatasetOptions& o, const ClickSetOptions& set) {
  check_click_options(o, set);
  check(!o.dir.empty() || !o.fields.files.empty(), kClickChecksSite,
        "--data-dir and --files are missing, expected the folder that `lockstep pack --output` wrote");
}

}  // namespace lockstep::datasets
