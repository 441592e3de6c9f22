#include "lockstep/data/wrap_sets.h"

#include <xxhash.h>

#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/cached_dataset.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/sample_order.h"
#include "lockstep/data/sample_store.h"

namespace lockstep::data {
namespace {

constexpr std::string_view kWrapSite = "options";

// Calls `change` with each set of the run.
template <class Change>
void for_each_set(RunData& data, const Change& change) {
  change(data.train);
  if (data.eval) change(data.eval);
  for (auto& [name, set] : data.more_eval) change(set);
}

void replace_unreadable(RunData& data) {
  for_each_set(data, [&](std::unique_ptr<Dataset>& set) {
    auto replacing = std::make_shared<ReplaceUnreadable>(std::move(set));
    set = std::make_unique<DatasetView>(replacing);
    data.replacing.push_back(std::move(replacing));
  });
}

void refuse_random(const Dataset& set, std::string_view option) {
  check(!set.is_random(), kWrapSite,
        "--{} with {}, whose samples are cropped at random while they are decoded: copies in memory would repeat the "
        "crops of their first epoch; omit --{}",
        option, set.describe(), option);
}

void cache(RunData& data, std::int64_t mebibytes) {
  double samples = 0;
  for_each_set(data, [&](const std::unique_ptr<Dataset>& set) {
    refuse_random(*set, "cache-mb");
    samples += static_cast<double>(set->size());
  });
  const double bytes = static_cast<double>(mebibytes) * 1048576;
  for_each_set(data, [&](std::unique_ptr<Dataset>& set) {
    const double share = samples > 0 ? bytes * static_cast<double>(set->size()) / samples : 0;
    set = std::make_unique<CachedDataset>(std::move(set), static_cast<std::size_t>(share));
  });
}

// The classes of samples [part.begin, part.end): what the set knows, or what it reads.
std::vector<std::int32_t> classes_of(const RunData& data, Range part) {
  const Dataset& set = *data.train;
  std::vector<std::int32_t> labels;
  bool known = true;
  for (std::int64_t i = part.begin; known && i < part.end; ++i) {
    labels.push_back(set.label(i));
    known = labels.back() >= 0;
  }
  return known ? labels : labels_of(set, data.labels.field, part);
}

std::vector<double> class_weights(const RunData& data, const comm::Communicator* comm) {
  const std::int64_t size = data.train->size();
  if (comm == nullptr) return balanced_weights(classes_of(data, {0, size}));
  const auto mine = comm::collectively(*comm, [&] {
    check(data.classes() > 0, kWrapSite, "--balanced needs a class of each sample, and {} has none",
          data.train->describe());
    return classes_of(data, part_of(size, comm->size(), comm->rank()));
  });
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < comm->size(); ++rank) counts.push_back(part_of(size, comm->size(), rank).size());
  std::vector<std::int32_t> all(static_cast<std::size_t>(size));
  comm->allgatherv(comm::ConstBuffer(mine), comm::Buffer(all), counts);
  return balanced_weights(all);
}

// The weights of a file, one number per line, as those of the training samples.
std::vector<double> read_weights(const Dataset& set, const std::filesystem::path& path) {
  const std::vector<double> given = read_numbers(path);
  std::vector<double> weights;
  for (std::int64_t i = 0; i < set.size(); ++i) {
    const std::int64_t origin = set.origin(i);
    check(origin < static_cast<std::int64_t>(given.size()), kWrapSite,
          "--sample-weights {} has {} weights, and the training set has sample {} of its files; expected a weight for "
          "each sample of the files, from sample 0 on",
          path.string(), given.size(), origin);
    weights.push_back(given[static_cast<std::size_t>(origin)]);
  }
  return weights;
}

}  // namespace

void check_stream_options(const SampleOptions& o) {
  const SampleOptions usual;
  check(o.train_subset.empty() && o.eval_subset.empty() && o.weights.empty() && !o.balanced && !o.store &&
            o.cache_mb == usual.cache_mb && o.unreadable == usual.unreadable && o.shuffle_block == usual.shuffle_block,
        kWrapSite,
        "a run with a stream has no set of training samples to choose from, hold or shuffle; expected neither "
        "--train-subset, --eval-subset, --unreadable, --cache-mb, --store, --balanced, --sample-weights nor "
        "--shuffle-block");
}

std::unique_ptr<Dataset> subset_of(std::unique_ptr<Dataset> set, const std::filesystem::path& file,
                                   std::string_view option) {
  if (file.empty()) return set;
  std::vector<std::int64_t> indices = read_indices(file);
  check(!indices.empty(), kWrapSite, "--{} {} has no indices, expected one per line", option, file.string());
  for (const std::int64_t index : indices) {
    check(index < set->size(), kWrapSite, "--{} {} has index {}, expected 0 to {} (samples of {})", option,
          file.string(), index, set->size() - 1, set->describe());
  }
  return std::make_unique<SubsetDataset>(std::move(set), std::move(indices));
}

void wrap_sets(RunData& data, const SampleOptions& options, Caching caching) {
  if (options.unreadable == Unreadable::Replace) replace_unreadable(data);
  if (options.cache_mb > 0 && caching == Caching::Here) cache(data, options.cache_mb);
}

void order_samples(RunData& data, const SampleOptions& options, const comm::Communicator* comm) {
  if (!options.balanced && options.weights.empty()) return;
  std::vector<double> weights;
  if (options.balanced) {
    weights = class_weights(data, comm);
  } else if (comm == nullptr) {
    weights = read_weights(*data.train, options.weights);
  } else {
    weights = comm::collectively(*comm, [&] { return read_weights(*data.train, options.weights); });
    const std::uint64_t hash = XXH3_64bits(weights.data(), weights.size() * sizeof(double));
    comm::check_same(*comm, "content of --sample-weights", formatted("{:016x}", hash));
  }
  const auto make = [&] { data.epoch.order = std::make_shared<WeightedOrder>(std::move(weights)); };
  if (comm == nullptr) {
    make();
  } else {
    comm::collectively(*comm, make);
  }
}

void store_samples(RunData& data, const SampleOptions& options, const comm::Communicator& comm, int threads) {
  if (!options.store) return;
  comm::collectively(comm, [&] { refuse_random(*data.train, "store"); });
  auto store = std::make_unique<SampleStore>(*data.train, comm, threads);
  data.epoch.supply = store.get();
  data.train = std::move(store);
}

}  // namespace lockstep::data
