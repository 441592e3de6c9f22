#include "lockstep/data/open.h"

#include <algorithm>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/cifar.h"
#include "lockstep/data/digits.h"
#include "lockstep/data/mnist.h"
#include "lockstep/data/synthetic.h"

namespace lockstep::data {
namespace {

constexpr std::int64_t kDigitsTrain = 12000, kDigitsEval = 2000;

std::unique_ptr<Dataset> open_digits(const DatasetOptions& options, Split split) {
  return make_digits(
      {.seed = options.seed, .split = split, .size = split == Split::Train ? kDigitsTrain : kDigitsEval});
}

std::unique_ptr<Dataset> open_synthetic(const DatasetOptions& options, Split split) {
  const bool few = split == Split::Eval && options.limit_eval == 0;
  const std::int64_t size = options.synthetic_size;
  return std::make_unique<SyntheticDataset>(
      SyntheticOptions{.shape = options.synthetic_shape,
                       .classes = options.synthetic_classes,
                       .size = few ? std::min(size, options.synthetic_eval_size) : size,
                       .seed = mix(options.seed, split == Split::Train ? 0 : 1)});
}

struct Entry {
  std::string name;
  bool needs_dir;
  std::unique_ptr<Dataset> (*open)(const DatasetOptions&, Split);
  std::vector<float> mean, stddev;  // of the pixels, over the training set; one value stands for every channel
  bool mirrored;                    // an image seen in a mirror is still of its class
};

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries{
      {"digits", false, open_digits, {0.158f}, {0.211f}, false},
      {"synthetic", false, open_synthetic, {0.5f}, {0.2887f}, true},  // uniform: 1 / sqrt(12)
      {"mnist",
       true,
       [](const DatasetOptions& o, Split s) -> std::unique_ptr<Dataset> { return read_mnist(o.dir, s); },
       {0.1307f},
       {0.3081f},
       false},
      {"cifar10",
       true,
       [](const DatasetOptions& o, Split s) -> std::unique_ptr<Dataset> { return read_cifar10(o.dir, s); },
       {0.4914f, 0.4822f, 0.4465f},
       {0.2470f, 0.2435f, 0.2616f},
       true},
      {"cifar100",
       true,
       [](const DatasetOptions& o, Split s) -> std::unique_ptr<Dataset> { return read_cifar100(o.dir, s); },
       {0.5071f, 0.4865f, 0.4409f},
       {0.2673f, 0.2564f, 0.2762f},
       true},
  };
  return entries;
}

std::unique_ptr<Dataset> limited(std::unique_ptr<Dataset> dataset, std::int64_t limit, std::string_view option) {
  if (limit == 0) return dataset;
  check(limit > 0 && limit <= dataset->size(), option, "{}, expected 0 (all) to {}: {}", limit, dataset->size(),
        dataset->describe());
  return SubsetDataset::first(std::move(dataset), limit);
}

std::vector<float> per_channel(const std::vector<float>& values, std::int64_t channels) {
  return values.size() == 1 ? std::vector<float>(static_cast<std::size_t>(channels), values[0]) : values;
}

}  // namespace

const std::vector<std::string>& dataset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Entry& entry : table()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

DatasetPair open_datasets(const DatasetOptions& options) {
  const auto entry = std::ranges::find(table(), options.name, &Entry::name);
  check(entry != table().end(), "dataset", "'{}' is not known, expected one of {}", options.name,
        fmt::join(dataset_names(), ", "));
  check(!entry->needs_dir || !options.dir.empty(), "dataset", "'{}' is read from files, expected a data directory",
        options.name);
  DatasetPair pair{.train = entry->open(options, Split::Train), .eval = entry->open(options, Split::Eval)};
  pair.classes = pair.train->classes();
  pair.image_shape = pair.train->fields()[find_field(options.name, pair.train->fields(), "image")].shape;
  check(pair.train->fields() == pair.eval->fields(), options.name, "images are {} for training and {} for evaluation",
        pair.image_shape.str(), pair.eval->fields()[0].shape.str());
  pair.mirrored = entry->mirrored;
  pair.mean = per_channel(entry->mean, pair.image_shape[0]);
  pair.stddev = per_channel(entry->stddev, pair.image_shape[0]);
  pair.train = limited(std::move(pair.train), options.limit_train, "limit-train");
  pair.eval = limited(std::move(pair.eval), options.limit_eval, "limit-eval");
  return pair;
}

}  // namespace lockstep::data
