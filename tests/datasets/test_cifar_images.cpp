// CIFAR-10 as train_images reads it: as image folders, as packed records of them, and as its own binary files, with the
// same batches bit for bit.
#include <algorithm>
#include <map>

#include "data/datasets/cifar.h"
#include "tests/datasets/image_sets.h"

namespace lockstep::datasets {
namespace {

using namespace data;

// All files of one size, as in CIFAR: by folder, by records of files, and by the binary files of the entry `cifar`. Of
// each split, `count` samples at equal distances count.
void expect_same_as_binary(const DatasetEntry& cifar, const std::filesystem::path& files, const TempDir& dir,
                           std::int64_t count) {
  const Catalogue catalogue(&cifar, 1);
  DatasetOptions options{.name = cifar.name, .dir = files, .augment = true};
  RunData binary = open_images(options, catalogue);
  // Folders have the order of classes, in which the binary samples are read too.
  std::map<bool, std::vector<std::int64_t>> orders;
  for (const bool train : {true, false}) {
    const Dataset& set = train ? *binary.train : *binary.eval;
    std::vector<std::pair<std::int32_t, std::int64_t>> order;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t i = k * set.size() / count;
      const auto sample = sample_of(set, i);
      TestImage image{.height = 32, .width = 32, .channels = 3};
      for (std::size_t p = 0; p < 1024; ++p) {
        for (std::size_t c = 0; c < 3; ++c) image.values.push_back(sample[0][c * 1024 + p]);
      }
      const std::string& name = binary.labels.names[static_cast<std::size_t>(set.label(i))];
      put_file(dir / (train ? "train" : "val") / name / formatted("{:06}.png", i), encode_png(image));
      order.emplace_back(set.label(i), i);
    }
    std::ranges::sort(order);
    for (const auto& [label, index] : order) orders[train].push_back(index);
  }
  const auto list = [&](const char* name, const std::vector<std::int64_t>& indices) {
    std::ofstream file(dir / name);
    for (const std::int64_t i : indices) file << i << "\n";
    return dir / name;
  };
  options.samples.train_subset = list("train.txt", orders[true]);
  options.samples.eval_subset = list("eval.txt", orders[false]);
  binary = open_images(options, catalogue);
  pack_both(dir.path(), dir / "packed");
  DatasetOptions folder = folder_options(dir.path(), 0);
  folder.mean = {0.4914, 0.4822, 0.4465};
  folder.stddev = {0.2470, 0.2435, 0.2616};
  DatasetOptions records = folder;
  records.name = "records";
  records.dir = dir / "packed";
  const auto expected = training_batches(binary);
  EXPECT_EQ(open_images(folder).labels.names, binary.labels.names);
  EXPECT_EQ(training_batches(open_images(folder)), expected) << "folder";
  EXPECT_EQ(training_batches(open_images(records)), expected) << "records";
}

TEST(CifarImages, FoldersRecordsAndBinaryGiveTheSameBatches) {
  const TempDir dir;
  for (const char* name : {"train.bin", "test.bin"}) {
    Bytes bytes;
    RandomStream random(6, bytes.size());
    for (int i = 0; i < 60; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(7 * i % 10));
      for (int p = 0; p < 3072; ++p) bytes.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
    dir.write(name, bytes);
  }
  DatasetEntry small = cifar10_entry();
  small.open = [](const DatasetOptions& o, Split split) {
    return read_cifar({.files = {o.dir / (split == Split::Train ? "train.bin" : "test.bin")}, .records = 60});
  };
  expect_same_as_binary(small, dir.path(), dir, 60);
}

TEST(CifarImages, RealFoldersRecordsAndBinaryGiveTheSameBatches) {
  if (!real_data() || !std::filesystem::exists(*real_data() / "cifar-10-batches-bin"))
    GTEST_SKIP() << "no cifar-10-batches-bin/ in LOCKSTEP_TEST_DATA";
  const TempDir dir;
  expect_same_as_binary(cifar10_entry(), *real_data(), dir, 1000);
}

}  // namespace
}  // namespace lockstep::datasets
