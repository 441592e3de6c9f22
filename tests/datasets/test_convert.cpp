#include "data/tool/convert.h"

#include "data/datasets/catalogue.h"
#include "data/datasets/synthetic.h"
#include "tests/data/support.h"

namespace lockstep::datasets {
namespace {

using namespace data;

void expect_same(const Dataset& left, const Dataset& right) {
  ASSERT_EQ(left.size(), right.size());
  for (std::int64_t i = 0; i < left.size(); ++i) ASSERT_EQ(sample_of(left, i), sample_of(right, i)) << i;
}

TEST(Convert, WhatIsWrittenIsReadAgain) {
  const RunData digits = open_data(catalogue(), {.name = "digits", .limit_train = 50, .limit_eval = 20, .seed = 4});
  const TempDir dir;
  find_format("npy").write(digits, dir.path());
  find_format("idx").write(digits, dir.path());
  for (const char* name : {"npy", "mnist"}) {
    const RunData read = open_data(catalogue(), {.name = name, .dir = dir.path()});
    EXPECT_EQ(read.classes(), 10) << name;
    expect_same(*read.train, *digits.train);
    expect_same(*read.eval, *digits.eval);
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    EXPECT_NE(entry.path().extension(), ".part") << entry.path();
}

TEST(Convert, CifarsBinaryForm) {
  const std::vector<DatasetEntry> own{synthetic_entry({.shape = {3, 32, 32}, .classes = 10, .size = 50000})};
  const RunData pair = open_data(own, {.name = "synthetic", .limit_eval = 10000});
  const TempDir dir;
  find_format("cifar10").write(pair, dir.path());
  const RunData read = open_data(catalogue(), {.name = "cifar10", .dir = dir.path()});
  for (const std::int64_t i : {0, 9999, 10000, 49999}) EXPECT_EQ(sample_of(*read.train, i), sample_of(*pair.train, i));
  EXPECT_EQ(sample_of(*read.eval, 9999), sample_of(*pair.eval, 9999));
}

TEST(Convert, WhatAFormatCannotHoldIsNamed) {
  const TempDir dir;
  const std::vector<DatasetEntry> own{synthetic_entry({.shape = {3, 8, 8}, .classes = 20, .size = 50})};
  const RunData pair = open_data(own, {.name = "synthetic"});
  expect_error([&] { find_format("idx").write(pair, dir.path()); }, {"3 channels, idx holds 1"});
  expect_error([&] { find_format("cifar10").write(pair, dir.path()); }, {"(3, 8, 8)", "(3, 32, 32)"});
  expect_error([] { find_format("png"); }, {"'png'", "npy, idx, cifar10"});
  expect_error([&] { find_format("npy").write(pair, dir / "absent"); }, {"absent", "No such file or directory"});
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace lockstep::datasets
