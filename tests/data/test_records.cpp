// Packed records: what is written is read again, and damage is named.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>

#include "lockstep/data/array_datasets.h"
#include "lockstep/data/loader.h"
#include "lockstep/data/records/record_reader.h"
#include "lockstep/data/records/record_writer.h"
#include "lockstep/data/unreadable.h"
#include "tests/data/image_files.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

FunctionDataset record_numbers(std::int64_t size) {
  return FunctionDataset(
      {.size = size,
       .fields = {{"x", {2, 3}, DType::F64}, {"none", {0}, DType::F32}, {"label", Shape{}, DType::I32}},
       .classes = 5,
       .description = "record_numbers",
       .read = [](std::int64_t i, auto out) {
         double x[6];
         std::iota(x, x + 6, static_cast<double>(10 * i));
         const auto label = static_cast<std::int32_t>(i % 5);
         std::memcpy(out[0], x, sizeof x);
         std::memcpy(out[2], &label, sizeof label);
       }});
}

void expect_same(const Dataset& left, const Dataset& right) {
  ASSERT_EQ(left.size(), right.size());
  ASSERT_EQ(left.fields(), right.fields());
  EXPECT_EQ(left.classes(), right.classes());
  for (std::int64_t i = 0; i < left.size(); ++i) ASSERT_EQ(sample_of(left, i), sample_of(right, i)) << i;
}

Bytes content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Records, ASetIsReadAsItWasPacked) {
  const auto set = record_numbers(100);
  for (const std::uint64_t file_bytes : {std::uint64_t{1}, std::uint64_t{500}, std::uint64_t{1} << 20}) {
    const TempDir dir;
    EXPECT_EQ(pack_dataset(set, {.folder = dir.path(), .name = "n", .file_bytes = file_bytes}), 100);
    const auto read = open_records(dir / "n.index", {});
    expect_same(*read, set);
    // A record has 52 bytes, and a file begins with 32: from 500 bytes on after 9 records.
    const std::size_t files = file_bytes == 1 ? 100 : file_bytes == 500 ? 12 : 1;
    std::size_t found = 0;
    for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
      found += entry.path().extension() == ".records";
    EXPECT_EQ(found, files);
  }
}

TEST(Records, AnEmptySetHasNoSamples) {
  const TempDir dir;
  pack_dataset(record_numbers(0), {.folder = dir.path(), .name = "none"});
  EXPECT_EQ(open_records(dir / "none.index", {})->size(), 0);
}

TEST(Records, ImageFilesStayAsTheyAre) {
  const TempDir dir;
  std::vector<std::vector<std::byte>> bytes;
  for (std::uint64_t i = 0; i < 7; ++i)
    bytes.push_back(encode_jpeg(smooth_image(20 + static_cast<std::int64_t>(i), 30, 3, i)));
  bytes[3].clear();  // an empty file is packed, and is an error where it is decoded
  const MemoryFiles files(bytes);
  EXPECT_EQ(pack_images(files, {.folder = dir.path(), .file_bytes = 2000}), 7);
  const RecordImages read(RecordReader(dir / "train.index"));
  EXPECT_EQ(read.class_names(), files.class_names());
  for (std::int64_t i = 0; i < 7; ++i) {
    EXPECT_EQ(read.read(i).bytes, bytes[static_cast<std::size_t>(i)]);
    EXPECT_EQ(read.read(i).label, i % 3);
  }
  const DecodeOptions options{.crop = {.height = 16, .width = 16, .shorter_side = 18}};
  const DecodedImages direct(std::make_unique<MemoryFiles>(bytes), options);
  const auto packed = open_records(dir / "train.index", options);
  EXPECT_EQ(packed->classes(), 3);
  for (const std::int64_t i : {0, 1, 2, 4, 5, 6}) EXPECT_EQ(sample_of(*packed, i), sample_of(direct, i)) << i;
  expect_error([&] { sample_of(*packed, 3); }, {".records", "record ", "offset ", "0 bytes"});
  EXPECT_THROW(RecordDataset(RecordReader(dir / "train.index")), Error);
}

TEST(Records, ShuffledPackingIsAPermutationOfTheSeed) {
  const auto set = record_numbers(50);
  const TempDir dir;
  pack_dataset(set, {.folder = dir.path(), .name = "a", .shuffle_seed = 4});
  pack_dataset(set, {.folder = dir.path(), .name = "b", .shuffle_seed = 4});
  pack_dataset(set, {.folder = dir.path(), .name = "c", .shuffle_seed = 5});
  const auto order = [&](const char* name) {
    const auto read = open_records(dir / (std::string(name) + ".index"), {});
    std::vector<int> firsts;
    for (std::int64_t i = 0; i < 50; ++i) {
      double x = 0;
      std::memcpy(&x, sample_of(*read, i)[0].data(), sizeof x);
      firsts.push_back(static_cast<int>(x) / 10);
    }
    return firsts;
  };
  const auto a = order("a");
  EXPECT_EQ(a, order("b"));
  EXPECT_NE(a, order("c"));
  EXPECT_FALSE(std::ranges::is_sorted(a));
  auto sorted = a;
  std::ranges::sort(sorted);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(sorted[static_cast<std::size_t>(i)], i);
}

TEST(Records, DamageIsNamedWithFileRecordAndOffset) {
  const TempDir dir;
  pack_dataset(record_numbers(20), {.folder = dir.path(), .name = "n", .file_bytes = 500});
  const auto path = dir / "n-00001.records";
  const Bytes good = content(path);
  Bytes bad = good;
  bad[32 + 3 * 52 + 5] ^= 1;  // record 3 of the second file
  dir.write("n-00001.records", bad);
  const auto set = open_records(dir / "n.index", {});
  EXPECT_EQ(sample_of(*set, 11), sample_of(record_numbers(20), 11));
  expect_error([&] { sample_of(*set, 12); }, {"n-00001.records", "record 3 at offset 188", "damaged", "XXH3-64"});
  bad = good;
  bad[bad.size() - 3] ^= 1;
  dir.write("n-00001.records", bad);
  expect_error([&] { RecordReader(dir / "n.index"); }, {"n-00001.records", "damaged index"});
  bad = good;
  bad.pop_back();
  dir.write("n-00001.records", bad);
  expect_error([&] { RecordReader(dir / "n.index"); }, {"n-00001.records", "truncated"});
  std::filesystem::remove(path);
  expect_error([&] { RecordReader(dir / "n.index"); }, {"n-00001.records", "No such file"});
}

TEST(Records, AFileThatShrinksWhileItIsOpenIsNamed) {
  const TempDir dir;
  pack_dataset(record_numbers(20), {.folder = dir.path(), .name = "n"});
  const auto set = open_records(dir / "n.index", {});
  std::filesystem::resize_file(dir / "n-00000.records", 100);
  EXPECT_EQ(sample_of(*set, 0), sample_of(record_numbers(20), 0));
  expect_error([&] { sample_of(*set, 7); }, {"n-00000.records", "record 7 at offset 396", "truncated"});
}

TEST(Records, ADamagedIndexIsNamed) {
  const TempDir dir;
  pack_dataset(record_numbers(3), {.folder = dir.path(), .name = "n"});
  const Bytes good = content(dir / "n.index");
  for (std::size_t i = 0; i < good.size(); ++i) {
    Bytes bad = good;
    bad[i] ^= 0x10;
    dir.write("bad.index", bad);
    expect_error([&] { RecordReader(dir / "bad.index"); }, {"bad.index"});
  }
  for (std::size_t length = 0; length < good.size(); length += 5) {
    dir.write("bad.index", Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length)));
    expect_error([&] { RecordReader(dir / "bad.index"); }, {"bad.index"});
  }
  Bytes newer = good;
  newer[8] = 2;
  dir.write("bad.index", newer);
  expect_error([&] { RecordReader(dir / "bad.index"); }, {"bad.index", "offset 8", "version 2"});
}

TEST(Records, AnExistingSetIsNotOverwritten) {
  const TempDir dir;
  pack_dataset(record_numbers(3), {.folder = dir.path(), .name = "n"});
  expect_error([&] { pack_dataset(record_numbers(4), {.folder = dir.path(), .name = "n"}); }, {"n.index", "exists"});
  expect_error([&] { pack_dataset(record_numbers(4), {.folder = dir.path(), .name = "a/b"}); }, {"a/b"});
  expect_error([&] { pack_dataset(record_numbers(4), {.folder = dir.path(), .name = ""}); }, {"''"});
}

// A writer that is destroyed before its end leaves no set, and no file that is not whole.
TEST(Records, AnUnfinishedSetIsNotThere) {
  const TempDir dir;
  {
    RecordWriter writer({.folder = dir.path(), .name = "n", .layout = {.fields = {{"x", {4}, DType::U8}}}});
    writer.add(std::vector<std::byte>(4));
    expect_error([&] { writer.add(std::vector<std::byte>(5)); }, {"record 1 has 5 bytes", "expected 4"});
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(Records, ThreadsReadAtOnce) {
  const TempDir dir;
  const auto set = record_numbers(200);
  pack_dataset(set, {.folder = dir.path(), .name = "n", .file_bytes = 3000});
  const auto read = open_records(dir / "n.index", {});
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t i = t; i < 200; i += 2) wrong += sample_of(*read, i) != sample_of(set, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Sampler, ShuffledBlocksKeepNeighboursTogether) {
  const auto order = [](std::int64_t block, std::int64_t shards) {
    DistributedSampler sampler({.size = 103,
                                .global_batch = 103,
                                .shards = shards,
                                .my_shards = {0, shards},
                                .seed = 3,
                                .shuffle_block = block});
    return sampler.next().samples;
  };
  const auto runs = order(8, 1);
  EXPECT_EQ(runs, order(8, 4));
  std::vector<std::int64_t> sorted = runs;
  std::ranges::sort(sorted);
  for (std::int64_t i = 0; i < 103; ++i) EXPECT_EQ(sorted[static_cast<std::size_t>(i)], i);
  EXPECT_FALSE(std::ranges::is_sorted(runs));
  int breaks = 0;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i] == runs[i - 1] + 1) continue;
    ++breaks;
    EXPECT_EQ(runs[i] % 8, 0);
  }
  EXPECT_LE(breaks, 12);  // 13 blocks
  EXPECT_NE(order(1, 1), runs);
  std::vector<std::int64_t> all(103);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order(1000, 1), all) << "one block";
  EXPECT_THROW(DistributedSampler({.size = 5, .shuffle_block = 0}), Error);
}

FunctionDataset broken(std::int64_t size, std::vector<std::int64_t> bad) {
  return FunctionDataset({.size = size,
                          .fields = {{"x", Shape{}, DType::I64}},
                          .description = "broken",
                          .read = [bad](std::int64_t i, auto out) {
                            check(std::ranges::find(bad, i) == bad.end(), "broken", "sample {} is damaged", i);
                            std::memcpy(out[0], &i, sizeof i);
                          }});
}

TEST(ReplaceUnreadable, TheNextReadableSampleStandsIn) {
  const ReplaceUnreadable set(std::make_unique<FunctionDataset>(broken(10, {3, 4, 9})));
  const std::vector<std::int64_t> expected{0, 1, 2, 5, 5, 5, 6, 7, 8, 0};
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 10; ++i)
      EXPECT_EQ(value_of<std::int64_t>(sample_of(set, i)[0]), expected[static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(set.replaced(), 6);
  EXPECT_EQ(set.unreadable(), (std::vector<std::int64_t>{3, 4, 9}));
  EXPECT_THROW(sample_of(set, 10), Error);
}

TEST(ReplaceUnreadable, StopsWhereNothingCanBeRead) {
  const ReplaceUnreadable none(std::make_unique<FunctionDataset>(broken(3, {0, 1, 2})));
  expect_error([&] { sample_of(none, 1); }, {"3 samples in a row", "from sample 1", "sample 0 is damaged"});
  const ReplaceUnreadable few(std::make_unique<FunctionDataset>(broken(10, {4, 5, 6})), {.most_in_a_row = 2});
  expect_error([&] { sample_of(few, 4); }, {"2 samples in a row", "sample 5 is damaged"});
  EXPECT_EQ(value_of<std::int64_t>(sample_of(few, 6)[0]), 7);
}

TEST(ReplaceUnreadable, RefusesANullSet) { EXPECT_THROW(ReplaceUnreadable(nullptr), Error); }

// The batches do not depend on the number of ranks or threads, also where samples are replaced.
TEST(ReplaceUnreadable, BatchesAreTheSameAtAnyNumberOfRanks) {
  const ReplaceUnreadable set(std::make_unique<FunctionDataset>(broken(40, {3, 4, 17, 39})));
  const auto epoch = [&](std::int64_t ranks, int threads) {
    std::vector<std::int64_t> values;
    std::vector<std::unique_ptr<Loader>> loaders;
    for (std::int64_t r = 0; r < ranks; ++r)
      loaders.push_back(std::make_unique<Loader>(
          set,
          DistributedSampler({.size = 40, .global_batch = 12, .shards = ranks, .my_shards = {r, r + 1}, .seed = 2}),
          Transforms{}, LoaderOptions{.threads = threads}));
    for (int step = 0; step < 4; ++step) {
      for (auto& loader : loaders) {
        const Batch batch = loader->next();
        const auto x = batch.at("x").data<std::int64_t>();
        values.insert(values.end(), x.begin(), x.end());
      }
    }
    return values;
  };
  EXPECT_EQ(epoch(1, 0), epoch(3, 2));
}

}  // namespace
}  // namespace lockstep::data
