#include "data/datasets/catalogue.h"

#include "data/datasets/cifar.h"
#include "data/datasets/clusters.h"
#include "data/datasets/corpus.h"
#include "data/datasets/csv_entry.h"
#include "data/datasets/digits.h"
#include "data/datasets/field_entries.h"
#include "data/datasets/image_entries.h"
#include "data/datasets/mnist.h"
#include "data/datasets/npy.h"
#include "data/datasets/synthetic.h"
#include "data/datasets/text_dataset.h"

namespace lockstep::datasets {

data::Catalogue catalogue() {
  static const std::vector<data::DatasetEntry> table{
      digits_entry(), synthetic_entry(), mnist_entry(), cifar10_entry(), cifar100_entry(), npy_entry(),
  };
  return table;
}

data::Catalogue image_catalogue() {
  static const std::vector<data::DatasetEntry> table = [] {
    std::vector<data::DatasetEntry> entries{folder_entry(), records_entry()};
    for (const data::DatasetEntry& entry : catalogue()) {
      entries.push_back(entry);
      entries.back().takes_images = true;
    }
    return entries;
  }();
  return table;
}

data::Catalogue field_catalogue() {
  static const std::vector<data::DatasetEntry> table{hdf5_entry(), arrays_entry(), csv_entry()};
  return table;
}

data::Catalogue force_catalogue() {
  static const std::vector<data::DatasetEntry> table{clusters_entry()};
  return table;
}

std::vector<data::DatasetEntry> text_catalogue(const TextOptions& options) {
  return {corpus_entry(options), text_entry(options)};
}

}  // namespace lockstep::datasets
