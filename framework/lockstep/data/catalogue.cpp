#include "lockstep/data/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/image_sets.h"
#include "lockstep/data/wrap_sets.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kCatalogueSite = "options";

std::unique_ptr<Dataset> limited(std::unique_ptr<Dataset> dataset, std::int64_t limit, std::string_view option) {
  if (limit == 0) return dataset;
  check(limit > 0 && limit <= dataset->size(), option, "is {}, expected 0 (all) to {}, the size of {}", limit,
        dataset->size(), dataset->describe());
  return SubsetDataset::first(std::move(dataset), limit);
}

void check_given_normalisation(const DatasetOptions& o) {
  check(o.mean.empty() == o.stddev.empty(), kCatalogueSite, "--{} is given without --{}, expected both or none",
        o.mean.empty() ? "std" : "mean", o.mean.empty() ? "mean" : "std");
}

}  // namespace

std::string dataset_names(Catalogue catalogue) {
  std::string names;
  for (const DatasetEntry& entry : catalogue) names += (names.empty() ? "" : ", ") + entry.name;
  return names;
}

const DatasetEntry& find_dataset(Catalogue catalogue, std::string_view name) {
  const auto entry = std::ranges::find(catalogue, name, &DatasetEntry::name);
  if (entry == catalogue.end())
    fail(kCatalogueSite, "--dataset is '{}', expected one of {}", name, dataset_names(catalogue));
  return *entry;
}

void check_dataset(Catalogue catalogue, const DatasetOptions& options) {
  const DatasetEntry& entry = find_dataset(catalogue, options.name);
  check_given_normalisation(options);
  if (entry.check_options) entry.check_options(options);
  if (entry.kind != DatasetKind::Fields) check_image_options(entry, options);
  const SampleOptions& samples = options.samples;
  if (entry.kind == DatasetKind::Stream) check_stream_options(samples);
  check(!samples.balanced || samples.weights.empty(), kCatalogueSite,
        "--balanced and --sample-weights are both given, expected one of the two");
  check(
      samples.shuffle_block == 1 || (!samples.balanced && samples.weights.empty()), kCatalogueSite,
      "--shuffle-block {} with --balanced or --sample-weights, which give each sample a place of its own; expected one "
      "of the two",
      samples.shuffle_block);
  check(
      !entry.needs_dir || !options.dir.empty(), kCatalogueSite,
      "--data-dir is missing, expected the folder with the files of {}, in this option or in LOCKSTEP_DATA_DIR (which "
      "mpirun takes to other hosts with -x LOCKSTEP_DATA_DIR)",
      options.name);
}

RunData open_data(Catalogue catalogue, const DatasetOptions& options) {
  check_dataset(catalogue, options);
  const DatasetEntry& entry = find_dataset(catalogue, options.name);
  RunData data;
  if (entry.open_all) {
    data = entry.open_all(options);
  } else {
    data.train = entry.open(options, Split::Train);
    data.eval = entry.open(options, Split::Eval);
    data.labels.names = entry.class_names;
    check(data.train->fields() == data.eval->fields(), options.name,
          "samples are {} for training and {} for evaluation", data.train->describe(), data.eval->describe());
  }
  const SampleOptions& samples = options.samples;
  check(samples.eval_subset.empty() || data.eval, kCatalogueSite,
        "--eval-subset {} without evaluation samples, expected some", samples.eval_subset.string());
  if (entry.kind != DatasetKind::Fields && data.train) {
    data.train = subset_of(std::move(data.train), samples.train_subset, "train-subset");
    if (data.eval) data.eval = subset_of(std::move(data.eval), samples.eval_subset, "eval-subset");
  }
  if (data.train) wrap_sets(data, samples, entry.kind == DatasetKind::Encoded ? Caching::ByEntry : Caching::Here);
  if (entry.kind != DatasetKind::Fields && data.train) complete_images(data, entry, options);
  check(!data.stream || options.limit_train == 0, kCatalogueSite,
        "--limit-train is {}, expected 0: {} makes samples while the run goes on, and --max-steps ends the run",
        options.limit_train, entry.name);
  if (data.train) data.train = limited(std::move(data.train), options.limit_train, "limit-train");
  if (data.eval) data.eval = limited(std::move(data.eval), options.limit_eval, "limit-eval");
  data.check();
  return data;
}

void prepare_data(Catalogue catalogue, const DatasetOptions& options, RunData& data, const comm::Communicator* comm) {
  const DatasetEntry& entry = find_dataset(catalogue, options.name);
  if (entry.prepare) entry.prepare(data, options, comm);
  prepare_images(data, entry, options, comm);
  order_samples(data, options.samples, comm);
  convert_floats(data, options.floats);
  data.check();
}

}  // namespace lockstep::data
