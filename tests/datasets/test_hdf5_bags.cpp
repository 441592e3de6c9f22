// Bags of any length in HDF5 files: ids with offsets, and lists.
#include "data/datasets/hdf5_bags.h"

#include "data/datasets/hdf5_fields.h"
#include "tests/datasets/hdf5_files.h"
#include "tests/datasets/python.h"

namespace lockstep::datasets {
namespace {

using namespace data;
using Ids = std::vector<std::int64_t>;

// "ids" (5) i64, "start" with these offsets, and "x", as many numbers as there are bags.
void write_offsets(const TempDir& dir, const std::string& name, const std::vector<std::int32_t>& offsets) {
  std::vector<io::NamedTensor> tensors;
  tensors.push_back({"ids", Tensor::from<std::int64_t>({5}, Ids{7, 8, 9, -1, 11})});
  tensors.push_back({"start", Tensor::from<std::int32_t>({std::ssize(offsets)}, offsets)});
  tensors.push_back({"x", Tensor({std::max<std::int64_t>(std::ssize(offsets) - 1, 0)}, DType::F32)});
  write_hdf5(dir, name, std::move(tensors));
}

Hdf5Options options(const TempDir& dir, const std::string& file, const std::string& bags, int processes = 1) {
  return {.files = {file},
          .dir = dir.path(),
          .inputs = {"genres=ids"},
          .targets = {"x"},
          .bags = parse_bags(bags),
          .processes = processes};
}

Ids ids_of(const Hdf5Dataset& set, std::int64_t sample) {
  const Bytes bytes = sample_of(set, sample)[0];
  Ids ids(bytes.size() / sizeof(std::int64_t));
  std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

TEST(Hdf5Bags, AreReadByTheirOffsets) {
  const TempDir dir;
  write_offsets(dir, "a.h5", {0, 2, 2, 5});
  write_offsets(dir, "b.h5", {1, 3});
  for (const int processes : {0, 1}) {
    const Hdf5Dataset set(options(dir, "?.h5", "genres:3:offsets=start", processes));
    EXPECT_EQ(set.size(), 4);
    EXPECT_EQ(set.fields()[0], (Field{"genres", {3}, DType::I64}));
    const std::vector<Ids> expected{{7, 8, -1}, {-1, -1, -1}, {9, -1, 11}, {8, 9, -1}};
    for (std::int64_t i = 0; i < 4; ++i) EXPECT_EQ(ids_of(set, i), expected[static_cast<std::size_t>(i)]) << i;
  }
  const Hdf5Dataset narrow(options(dir, "a.h5", "genres:2:offsets=start"));
  EXPECT_EQ(ids_of(narrow, 0), (Ids{7, 8}));
  expect_error([&] { sample_of(narrow, 2); }, {"a.h5", "'ids', sample 2", "a bag of 3 ids, expected at most 2", ":3"});
}

TEST(Hdf5Bags, WrongOffsetsAreNamed) {
  const TempDir dir;
  const auto fails = [&](const std::vector<std::int32_t>& offsets, const std::vector<std::string>& parts) {
    write_offsets(dir, "a.h5", offsets);
    for (const int processes : {0, 1})
      expect_error([&] { Hdf5Dataset set(options(dir, "a.h5", "genres:offsets=start", processes)); }, parts);
    std::filesystem::remove(dir / "a.h5");
  };
  fails({0, 3, 2, 5}, {"[hdf5]", "a.h5", "'start'[2] is 2", "from 3", "to 5 (the number of ids in 'ids')"});
  fails({0, 3, 6}, {"'start'[2] is 6", "to 5"});
  fails({-1, 3}, {"'start'[0] is -1"});
  fails({}, {"'start' has no offsets"});
  fails({0}, {"have no samples"});
  write_offsets(dir, "a.h5", {0, 2, 5});
  const auto wrong = [&](const std::string& bags, const std::vector<std::string>& parts) {
    expect_error([&] { Hdf5Dataset set(options(dir, "a.h5", bags)); }, parts);
  };
  wrong("genres:offsets=x", {"'x' is f32", "expected integers in one axis"});
  wrong("genres:offsets=y", {"no dataset 'y'"});
  wrong("genres:offsets=start:counts=n", {"expected one of the two"});
  wrong("genres", {"'x' has 2 samples", "'ids' has 5"});
  Hdf5Options sliced = options(dir, "a.h5", "genres:offsets=start");
  sliced.inputs = {"genres=ids[:2]"};
  expect_error([&] { Hdf5Dataset set(sliced); }, {"'ids' has bags of any length, expected its name without a slice"});
}

TEST(Hdf5Bags, OffsetsThatChangeAfterwardsAreAnError) {
  const TempDir dir;
  write_offsets(dir, "a.h5", {0, 2, 5});
  write_offsets(dir, "b.h5", {0, 1});
  Hdf5Options one = options(dir, "?.h5", "genres:offsets=start");
  one.open_files = 1;
  const Hdf5Dataset set(one);
  sample_of(set, 2);  // a.h5 is closed now
  std::filesystem::remove(dir / "a.h5");
  write_offsets(dir, "a.h5", {0, 4, 3});
  expect_error([&] { sample_of(set, 1); }, {"'start'[2] is 3"});
}

TEST(Hdf5Bags, AreReadFromLists) {
  const TempDir dir;
  const std::string python = find_python("h5py");
  if (python.empty()) GTEST_SKIP() << "python3 has no h5py";
  ASSERT_EQ(run_python(python, dir.path(), R"(
import h5py, numpy as np
lists = [[3, 5], [], [2**40, 1, 0]]
with h5py.File("lists.h5", "w") as f:
    for name, dtype in {"ids": np.int64, "small": np.uint16, "floats": np.float32, "large": np.uint64}.items():
        f.create_dataset(name, (3,), h5py.vlen_dtype(dtype))
        for i, one in enumerate(lists):
            f[name][i] = np.array(one).astype(dtype)
    f["large"][1] = np.array([2**63], np.uint64)
    f.create_dataset("packed", (3,), h5py.vlen_dtype(np.dtype(">i4")), chunks=(2,), compression="gzip")
    f["packed"][2] = np.array([4, 6], np.int32)
    f["x"] = np.zeros(3, np.float32)
)"),
            0);
  const auto open = [&](const std::string& name, const std::string& bags, int processes) {
    Hdf5Options o = options(dir, "lists.h5", bags, processes);
    o.inputs = {"genres=" + name};
    return std::make_unique<Hdf5Dataset>(o);
  };
  for (const int processes : {0, 1}) {
    const auto set = open("ids", "genres:3", processes);
    EXPECT_EQ(set->size(), 3);
    EXPECT_EQ(ids_of(*set, 0), (Ids{3, 5, -1}));
    EXPECT_EQ(ids_of(*set, 1), (Ids{-1, -1, -1}));
    EXPECT_EQ(ids_of(*set, 2), (Ids{std::int64_t{1} << 40, 1, 0}));
    EXPECT_EQ(ids_of(*open("small", "genres:4", processes), 0), (Ids{3, 5, -1, -1}));
    EXPECT_EQ(ids_of(*open("packed", "genres:2", processes), 2), (Ids{4, 6}));
    expect_error([&] { sample_of(*open("ids", "genres:2", processes), 2); }, {"a bag of 3 ids, expected at most 2"});
    expect_error([&] { sample_of(*open("large", "genres", processes), 1); }, {"list 1 of 'large'", "i64 cannot hold"});
    expect_error([&] { open("floats", "genres", processes); }, {"'floats' are no numbers"});
    expect_error([&] { open("ids", "other", processes); }, {"'ids' are lists of integers", "--bags"});
    expect_error([&] { open("ids", "genres:offsets=x", processes); }, {"without offsets= and counts="});
  }
}

}  // namespace
}  // namespace lockstep::datasets
