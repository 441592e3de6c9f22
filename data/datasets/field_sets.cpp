#include "data/datasets/field_sets.h"

#include <utility>

#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/dataset_view.h"
#include "lockstep/data/wrap_sets.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kFieldSetsSite = "options";

using data::DatasetOptions;
using data::Purpose;
using data::RunData;

std::vector<std::string> files_of(const DatasetOptions& o) { return split_names("files", o.fields.files); }

// One set for everything: nothing is trained.
RunData open_one(std::unique_ptr<data::Dataset> set) {
  const std::shared_ptr<const data::Dataset> shared = std::move(set);
  return {.train = std::make_unique<data::DatasetView>(shared), .eval = std::make_unique<data::DatasetView>(shared)};
}

}  // namespace

RunData open_sets(const DatasetOptions& o, const MakeSet& make) {
  if (o.purpose == Purpose::Predict) return open_one(make(o, files_of(o)));
  if (o.purpose == Purpose::Evaluate && !o.fields.eval_files.empty())
    return open_one(make(o, split_names("eval-files", o.fields.eval_files)));
  if (o.purpose == Purpose::Evaluate && o.fields.eval_fraction == 1) return open_one(make(o, files_of(o)));
  RunData data;
  data.train = make(o, files_of(o));
  const data::SampleOptions& samples = o.samples;
  if (!o.fields.eval_files.empty()) {
    data.eval = make(o, split_names("eval-files", o.fields.eval_files));
  } else if (!samples.eval_subset.empty()) {
    check(!samples.train_subset.empty(), kFieldSetsSite,
          "--eval-subset is given without --eval-files, so it names samples of --files; expected --train-subset beside "
          "it");
    const std::shared_ptr<const data::Dataset> all = std::move(data.train);
    data.train = std::make_unique<data::DatasetView>(all);
    data.eval = std::make_unique<data::DatasetView>(all);
  }
  data.train = data::subset_of(std::move(data.train), samples.train_subset, "train-subset");
  if (data.eval) {
    data.eval = data::subset_of(std::move(data.eval), samples.eval_subset, "eval-subset");
  } else if (o.fields.eval_fraction > 0) {
    auto parts =
        data::split_dataset(std::move(data.train), {1 - o.fields.eval_fraction, o.fields.eval_fraction}, o.seed);
    data.train = std::move(parts[0]);
    data.eval = std::move(parts[1]);
    check(data.train->size() > 0 && data.eval->size() > 0, kFieldSetsSite,
          "--eval-fraction is {}, which leaves {} training and {} evaluation samples, expected at least one each",
          o.fields.eval_fraction, data.train->size(), data.eval->size());
  }
  return data;
}

}  // namespace lockstep::datasets
