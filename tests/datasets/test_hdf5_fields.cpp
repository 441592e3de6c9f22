#include "data/datasets/hdf5_fields.h"

#include <atomic>
#include <numeric>
#include <thread>

#include "lockstep/data/inspection.h"
#include "lockstep/io/hdf5_chunk_cache.h"
#include "tests/datasets/hdf5_files.h"
#include "tests/datasets/python.h"
#include "tests/memory_limit.h"

namespace lockstep::datasets {
namespace {

using namespace data;

// Elements first, first + 1, ... in this shape.
template <class T>
Tensor counted(const Shape& shape, int first = 0) {
  std::vector<T> values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), static_cast<T>(first));
  return Tensor::from<T>(shape, values);
}

// "x", (samples, 2, 3) of f32, and "g/y", (samples) of i64.
void write_run(const TempDir& dir, const std::string& name, std::int64_t samples, int first = 0) {
  std::vector<io::NamedTensor> tensors;
  tensors.push_back({"x", counted<float>({samples, 2, 3}, first)});
  tensors.push_back({"g/y", counted<std::int64_t>({samples}, first)});
  write_hdf5(dir, name, std::move(tensors));
}

template <class T>
std::vector<T> values_of(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

using Floats = std::vector<float>;

TEST(Hdf5Fields, ReadsSamplesOfSeveralFiles) {
  const TempDir dir;
  write_run(dir, "run1.h5", 4);
  write_run(dir, "run2.h5", 2, 100);
  for (const int processes : {0, 1, 3}) {
    const Hdf5Dataset set({.files = {"run*.h5"},
                           .dir = dir.path(),
                           .inputs = {"x"},
                           .targets = {"y=g/y:i32"},
                           .processes = processes,
                           .open_files = 1});
    EXPECT_EQ(set.size(), 6);
    EXPECT_EQ(set.inputs(), 1u);
    EXPECT_EQ(set.fields(), (std::vector<Field>{{"x", {2, 3}, DType::F32}, {"y", Shape{}, DType::I32}}));
    EXPECT_EQ(values_of<float>(sample_of(set, 5)[0]), (Floats{106, 107, 108, 109, 110, 111}));
    EXPECT_EQ(values_of<float>(sample_of(set, 3)[0]), (Floats{18, 19, 20, 21, 22, 23}));
    EXPECT_EQ(value_of<std::int32_t>(sample_of(set, 3)[1]), 3);
    EXPECT_EQ(value_of<std::int32_t>(sample_of(set, 4)[1]), 100);
    EXPECT_TRUE(set.locate(4).ends_with("run2.h5, sample 0")) << set.locate(4);
    EXPECT_NE(set.describe().find("6 samples in 2 files"), std::string::npos) << set.describe();
  }
}

TEST(Hdf5Fields, TakesSlicesAndOtherSampleAxes) {
  const TempDir dir;
  write_run(dir, "run.h5", 5);
  const Hdf5Dataset set({.files = {(dir / "run.h5").string()},
                         .inputs = {"x[1:5:2, -1, ::2]", "all=x[1::2]:f64"},
                         .targets = {"g/y[1::2]"},
                         .processes = 0});
  EXPECT_EQ(set.size(), 2);
  EXPECT_EQ(set.fields()[0].shape, Shape({2}));
  EXPECT_EQ(values_of<float>(sample_of(set, 1)[0]), (Floats{21, 23}));  // sample 3: elements 18 to 23
  EXPECT_EQ(values_of<double>(sample_of(set, 0)[1]), (std::vector<double>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(value_of<std::int64_t>(sample_of(set, 1)[2]), 3);
  const Hdf5Dataset last({.files = {(dir / "run.h5").string()}, .inputs = {"x"}, .sample_axis = -1, .processes = 0});
  EXPECT_EQ(last.size(), 3);
  EXPECT_EQ(last.fields()[0].shape, Shape({5, 2}));
  EXPECT_EQ(values_of<float>(sample_of(last, 1)[0]), (Floats{1, 4, 7, 10, 13, 16, 19, 22, 25, 28}));
}

TEST(Hdf5Fields, MistakesNameFileDatasetAndExpectation) {
  const TempDir dir;
  write_run(dir, "a.h5", 4);
  write_run(dir, "b.h5", 4);
  std::vector<io::NamedTensor> odd;
  odd.push_back({"x", counted<float>({4, 2, 4})});
  odd.push_back({"g/y", counted<double>({3})});
  write_hdf5(dir, "odd.h5", std::move(odd));
  dir.write("no.h5", {'t', 'e', 'x', 't'});
  dir.write("empty.h5", {});
  const auto fails = [&](Hdf5Options options, const std::vector<std::string>& parts) {
    options.dir = dir.path();
    for (const int processes : {0, 1}) {
      options.processes = processes;
      expect_error([&] { Hdf5Dataset{options}; }, parts);
    }
  };
  fails({.files = {"a.h5"}, .inputs = {"density"}},
        {"[hdf5]", "a.h5", "no dataset 'density'", "g/y (4) i64", "x (4, 2, 3) f32"});
  fails({.files = {"a.h5"}, .inputs = {"g"}}, {"'g' is a group", "x (4, 2, 3) f32"});
  fails({.files = {"a.h5", "odd.h5"}, .inputs = {"x"}}, {"odd.h5", "'x'", "(2, 4)", "a.h5", "(2, 3)"});
  fails({.files = {"odd.h5"}, .inputs = {"x"}, .targets = {"g/y"}}, {"'g/y' has 3 samples", "'x' has 4"});
  fails({.files = {"a.h5"}, .inputs = {"x"}, .targets = {"g/y"}, .sample_axis = 1}, {"'g/y'", "(4)", "axis 1"});
  fails({.files = {"a.h5"}, .inputs = {"x[:, 2]"}}, {"a.h5", "index 2", "axis 1"});
  fails({.files = {"no.h5"}, .inputs = {"x"}}, {"no.h5", "not readable as HDF5"});
  fails({.files = {"empty.h5"}, .inputs = {"x"}}, {"empty.h5", "not readable as HDF5"});
  fails({.files = {"a.h5"}, .inputs = {}}, {"no inputs"});
  fails({.files = {"a.h5"}, .inputs = {"x", "x"}}, {"two fields are called 'x'", "--targets recon=x"});
  fails({.files = {"none.h5"}, .inputs = {"x"}}, {"none.h5", "no such file"});
  fails({.files = {"a.h5"}, .inputs = {"x"}, .groups = true}, {"a.h5", "no dataset 'g/x'"});
}

TEST(Hdf5Fields, AFileThatChangesAfterwardsIsAnError) {
  const TempDir dir;
  write_run(dir, "a.h5", 4);
  write_run(dir, "b.h5", 4);
  const Hdf5Dataset set({.files = {"a.h5", "b.h5"}, .dir = dir.path(), .inputs = {"x"}, .open_files = 1});
  sample_of(set, 7);  // a.h5 is closed now
  std::filesystem::remove(dir / "a.h5");
  std::vector<io::NamedTensor> other;
  other.push_back({"x", counted<float>({4, 2, 4})});
  write_hdf5(dir, "a.h5", std::move(other));
  expect_error([&] { sample_of(set, 0); }, {"a.h5", "(4, 2, 4)", "expected f32 (4, 2, 3)"});
}

TEST(Hdf5Fields, GroupsMayBeSamples) {
  const TempDir dir;
  std::vector<io::NamedTensor> tensors;
  for (const int i : {2, 0, 1}) {
    tensors.push_back({formatted("all/s{}/in/x", i), counted<float>({2, 3}, 10 * i)});
    tensors.push_back({formatted("all/s{}/y", i), counted<std::int32_t>(Shape{}, i)});
  }
  tensors.push_back({"all/not-a-group", counted<float>({1})});
  write_hdf5(dir, "a.h5", std::move(tensors));
  std::vector<io::NamedTensor> more;
  more.push_back({"all/t/in/x", counted<float>({2, 3}, 50)});
  more.push_back({"all/t/y", counted<std::int32_t>(Shape{}, 5)});
  more.push_back({"all/u/in/x", counted<float>({2, 4}, 50)});
  more.push_back({"all/v/in/z", counted<float>({2, 4}, 50)});
  write_hdf5(dir, "b.h5", std::move(more));
  const Hdf5Dataset set({.files = {"a.h5", "b.h5"},
                         .dir = dir.path(),
                         .inputs = {"x=in/x[:, 1:]"},
                         .targets = {"y"},
                         .groups = true,
                         .group = "/all/"});
  EXPECT_EQ(set.size(), 6);
  EXPECT_EQ(set.fields()[0].shape, Shape({2, 2}));
  EXPECT_EQ(values_of<float>(sample_of(set, 2)[0]), (Floats{21, 22, 24, 25}));
  EXPECT_EQ(value_of<std::int32_t>(sample_of(set, 2)[1]), 2);
  EXPECT_EQ(values_of<float>(sample_of(set, 3)[0]), (Floats{51, 52, 54, 55}));
  EXPECT_TRUE(set.locate(4).ends_with("b.h5, group u"));
  expect_error([&] { sample_of(set, 4); }, {"b.h5", "'all/u/in/x'", "(2, 4)", "expected f32 (2, 3)"});
  expect_error([&] { sample_of(set, 5); }, {"b.h5", "no dataset 'all/v/in/x'", "all/v/in/z (2, 4) f32"});
  expect_error(
      [&] { Hdf5Dataset({.files = {"a.h5"}, .dir = dir.path(), .inputs = {"x"}, .groups = true, .group = "none"}); },
      {"no group 'none'", "all/s0/in/x"});
}

TEST(Hdf5Fields, ThreadsReadAtOnce) {
  const TempDir dir;
  write_run(dir, "a.h5", 64);
  for (const int processes : {0, 2}) {
    const Hdf5Dataset set({.files = {"a.h5"}, .dir = dir.path(), .inputs = {"x"}, .processes = processes});
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (std::int64_t i = 0; i < 64; ++i) {
          float x[6];
          std::byte* out[] = {reinterpret_cast<std::byte*>(x)};
          set.read(i, out);
          for (int e = 0; e < 6; ++e) wrong += x[e] != static_cast<float>(6 * i + e) ? 1 : 0;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
  }
}

// A loader's threads come and go; the reader process must not end with the thread that made it.
TEST(Hdf5Fields, TheReaderProcessOutlivesTheThreadThatStartedIt) {
  const TempDir dir;
  write_run(dir, "a.h5", 4);
  const auto reader = io::make_isolated_hdf5_reader({});
  io::Hdf5Info info;
  std::thread([&] { info = reader->info((dir / "a.h5").string(), "x"); }).join();
  Floats out(6);
  reader->read((dir / "a.h5").string(), "x", info, {.start = {1, 0, 0}, .count = {1, 2, 3}, .step = {1, 1, 1}},
               std::as_writable_bytes(std::span(out)));
  EXPECT_EQ(out, (Floats{6, 7, 8, 9, 10, 11}));
}

// A reply is no larger than the memory that the reader process may take.
TEST(Hdf5Fields, AReplyAboveTheLimitIsRefused) {
  const TempDir dir;
  std::vector<io::NamedTensor> tensors;
  for (int i = 10; i < 30; ++i) tensors.push_back({formatted("group{}/x", i), counted<float>({2})});
  write_hdf5(dir, "a.h5", std::move(tensors));
  const std::string file = (dir / "a.h5").string();
  EXPECT_EQ(io::make_isolated_hdf5_reader({})->groups(file, "/").size(), 20u);
  const auto little = io::make_isolated_hdf5_reader({.memory = 100});
  expect_error([&] { little->groups(file, "/"); }, {"a.h5", "sent a malformed message"});
}

TEST(Hdf5ChunkCache, HasTheChunksThatASlabTouches) {
  const io::Hdf5Info info{.shape = {100, 30}, .dtype = DType::F32, .chunk = {10, 7}};
  const auto touched = [&](std::int64_t start, std::int64_t count, std::int64_t step) {
    return io::touched_chunk_bytes(info, {.start = {23, start}, .count = {1, count}, .step = {1, step}}, 4);
  };
  constexpr std::size_t kChunk = 10 * 7 * 4;
  EXPECT_EQ(touched(7, 7, 1), kChunk);
  EXPECT_EQ(touched(6, 2, 1), 2 * kChunk);
  EXPECT_EQ(touched(6, 9, 1), 3 * kChunk);
  EXPECT_EQ(touched(1, 3, 3), kChunk + kChunk);
  EXPECT_EQ(touched(0, 1, 1), kChunk);
}

TEST(Hdf5ChunkCache, TogetherHaveALimit) {
  const io::Hdf5ReaderOptions options{.chunk_cache = 10, .all_caches = 100, .sets_at_once = 3, .memory = 1000};
  EXPECT_EQ(io::most_cache_bytes(2, options), 500u) << "the datasets of a sample stay open";
  EXPECT_EQ(io::most_cache_bytes(3, options), 100u);
  const io::Hdf5Info info{.shape = {9, 400}, .dtype = DType::F32, .chunk = {1, 400}};
  const io::Hdf5Slab slab{.start = {0, 0}, .count = {1, 400}, .step = {1, 1}};
  EXPECT_EQ(io::chunk_cache_bytes(info, slab, options), 500u);
}

// --- files of h5py

class Hdf5Python : public testing::Test {
 protected:
  void SetUp() override {
    python_ = find_python("h5py, numpy");
    if (python_.empty()) GTEST_SKIP() << "no python3 with h5py";
  }
  void write(const std::string& program) {
    ASSERT_EQ(run_python(python_, dir_.path(), "import h5py, numpy as np\nf = h5py.File('a.h5', 'w')\n" + program), 0);
  }
  Hdf5Options options(const std::vector<std::string>& inputs) const {
    return {.files = {"a.h5"}, .dir = dir_.path(), .inputs = inputs};
  }
  TempDir dir_;
  std::string python_;
};

TEST_F(Hdf5Python, EveryTypeOfNumberIsRead) {
  struct Row {
    std::string dtype;
    DType expected;
  };
  const std::vector<Row> rows{{"<f2", DType::F32}, {">f2", DType::F32}, {"<f4", DType::F32}, {">f4", DType::F32},
                              {"<f8", DType::F64}, {">f8", DType::F64}, {"|i1", DType::I32}, {"|u1", DType::U8},
                              {">i2", DType::I32}, {"<u2", DType::I32}, {">i4", DType::I32}, {"<u4", DType::I64},
                              {">i8", DType::I64}, {"<u8", DType::I64}, {"?", DType::U8}};
  std::string program;
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    program += formatted("f['v{}'] = np.array([[0, 1], [1, 1]]).astype('{}')\n", i, rows[i].dtype);
    inputs.push_back(formatted("v{}", i));
  }
  write(program + "f.close()\n");
  const Hdf5Dataset as_stored(options(inputs));
  std::vector<std::string> as_f64, as_i32;
  for (const std::string& input : inputs) {
    as_f64.push_back(input + ":f64");
    as_i32.push_back(input + ":i32");
  }
  const Hdf5Dataset doubles(options(as_f64)), integers(options(as_i32));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(as_stored.fields()[i].dtype, rows[i].expected) << rows[i].dtype;
    EXPECT_EQ(values_of<double>(sample_of(doubles, 0)[i]), (std::vector<double>{0, 1})) << rows[i].dtype;
    EXPECT_EQ(values_of<std::int32_t>(sample_of(integers, 1)[i]), (std::vector<std::int32_t>{1, 1})) << rows[i].dtype;
  }
}

TEST_F(Hdf5Python, ExactValuesOfOddTypes) {
  write(
      "f['h'] = np.array([[1.5, -0.25, 65504]], '>f2')\n"
      "f['d'] = np.array([[1e-3, -1e200]], '>f8')\n"
      "f['q'] = np.array([[2**63 + 5]], '<u8')\n"
      "f['l'] = np.array([[2**40, 1]], '>i8')\n"
      "f['half'] = np.array([[0.5]])\n"
      "f['s'] = 'text'\nf['n'] = h5py.Empty('f')\nf['c'] = np.zeros((2, 2), 'c16')\nf.close()\n");
  const Hdf5Dataset set(options({"h", "d", "l"}));
  EXPECT_EQ(values_of<float>(sample_of(set, 0)[0]), (Floats{1.5F, -0.25F, 65504}));
  EXPECT_EQ(values_of<double>(sample_of(set, 0)[1]), (std::vector<double>{1e-3, -1e200}));
  EXPECT_EQ(values_of<std::int64_t>(sample_of(set, 0)[2]), (std::vector<std::int64_t>{std::int64_t{1} << 40, 1}));
  expect_error([&] { sample_of(Hdf5Dataset(options({"q"})), 0); }, {"a.h5", "'q'", "i64 cannot hold"});
  expect_error([&] { sample_of(Hdf5Dataset(options({"l:i32"})), 0); }, {"'l'", "element 0", "does not fit i32"});
  expect_error([&] { sample_of(Hdf5Dataset(options({"half:i32"})), 0); }, {"'half'", "does not fit i32"});
  expect_error([&] { sample_of(Hdf5Dataset(options({"d:f32"})), 0); }, {"'d'", "element 1", "does not fit f32"});
  expect_error([&] { Hdf5Dataset{options({"s"})}; }, {"'s'", "no numbers"});
  expect_error([&] { Hdf5Dataset{options({"n"})}; }, {"'n'", "null dataspace"});
  expect_error([&] { Hdf5Dataset{options({"c"})}; }, {"'c'", "no numbers"});
}

TEST_F(Hdf5Python, ChunksCompressionAndLinksAreFollowed) {
  write(
      "x = np.arange(40 * 6 * 10, dtype='f4').reshape(40, 6, 10)\n"
      "f.create_dataset('gzip', data=x, chunks=(7, 4, 3), compression='gzip', shuffle=True)\n"
      "f.create_dataset('lzf', data=x, chunks=(1, 6, 10), compression='lzf')\n"
      "f.create_dataset('sum', data=x, chunks=(40, 6, 10), fletcher32=True)\n"
      "f.create_dataset('grow', data=x, maxshape=(None, 6, 10))\n"
      "f['soft'] = h5py.SoftLink('/gzip')\n"
      "f['dangling'] = h5py.SoftLink('/none')\n"
      "d = f.create_dataset('unwritten', (40, 2), 'f4', chunks=(8, 2), fillvalue=7)\nf.close()\n");
  for (const int processes : {0, 2}) {
    for (const std::size_t cache : {std::size_t{0}, std::size_t{1} << 20}) {
      Hdf5Options all = options({"gzip[:, 1:5, ::3]", "sum", "grow", "soft", "unwritten"});
      all.processes = processes;
      all.cache = cache;
      const Hdf5Dataset set(all);
      for (const std::int64_t i : {39, 0, 17, 18, 3}) {
        const auto sample = sample_of(set, i);
        Floats expected, whole(60);
        std::iota(whole.begin(), whole.end(), static_cast<float>(60 * i));
        for (int row = 1; row < 5; ++row) {
          for (int column = 0; column < 10; column += 3)
            expected.push_back(static_cast<float>(60 * i + 10 * row + column));
        }
        EXPECT_EQ(values_of<float>(sample[0]), expected);
        for (std::size_t f = 1; f < 4; ++f) EXPECT_EQ(values_of<float>(sample[f]), whole) << f;
        EXPECT_EQ(values_of<float>(sample[4]), (Floats{7, 7}));
      }
    }
  }
  expect_error([&] { Hdf5Dataset{options({"dangling"})}; }, {"no dataset 'dangling'"});
}

// 24 datasets, each with a chunk of 8 MiB, in a process that may take 128 MiB and 16 MiB of caches.
TEST_F(Hdf5Python, ManyDatasetsAreReadInLittleMemory) {
  LOCKSTEP_SKIP_WITHOUT_LIMITS();
  write(
      "for i in range(24):\n"
      "    f.create_dataset('v%d' % i, data=np.full((4, 1 << 19), i, 'f4'), chunks=(4, 1 << 19), compression='gzip',\n"
      "                     compression_opts=1)\nf.close()\n");
  constexpr std::int64_t kWidth = 1 << 19;
  const std::string file = (dir_ / "a.h5").string();
  const auto reader = io::make_isolated_hdf5_reader(
      {.chunk_cache = std::size_t{1} << 20, .all_caches = std::size_t{16} << 20, .memory = std::size_t{128} << 20});
  Floats row(static_cast<std::size_t>(kWidth));
  for (std::int64_t sample = 0; sample < 2; ++sample) {
    for (int i = 0; i < 24; ++i) {
      const std::string name = formatted("v{}", i);
      const io::Hdf5Info info = reader->info(file, name);
      reader->read(file, name, info, {.start = {sample, 0}, .count = {1, kWidth}, .step = {1, 1}},
                   std::as_writable_bytes(std::span(row)));
      EXPECT_EQ(row.front(), static_cast<float>(i));
      EXPECT_EQ(row.back(), static_cast<float>(i));
    }
  }
}

TEST_F(Hdf5Python, AFilterThatIsNotThereIsNamed) {
  // A chunk that claims to be packed by a filter which no library has.
  write(
      "p = h5py.h5p.create(h5py.h5p.DATASET_CREATE)\np.set_chunk((2, 4))\n"
      "p.set_filter(32123, h5py.h5z.FLAG_OPTIONAL, (1,))\n"
      "s = h5py.h5s.create_simple((4, 4))\n"
      "d = h5py.h5d.create(f.id, b'x', h5py.h5t.IEEE_F32LE, s, p)\n"
      "d.write_direct_chunk((0, 0), b'packed', 0)\nf.close()\n");
  for (const int processes : {0, 1}) {
    Hdf5Options one = options({"x"});
    one.processes = processes;
    expect_error([&] { sample_of(Hdf5Dataset(one), 0); }, {"a.h5", "'x'", "filter"});
  }
}

TEST_F(Hdf5Python, NanIsFoundByInspection) {
  write("x = np.zeros((5, 3), 'f8'); x[2, 1] = np.nan; x[4, 0] = np.inf\nf['x'] = x\nf.close()\n");
  const Hdf5Dataset set(options({"x"}));
  const auto report = inspect(set)[0];
  EXPECT_EQ(report.nan, 1);
  EXPECT_EQ(report.infinite, 1);
  EXPECT_EQ(report.first_sample, 2);
  EXPECT_EQ(report.first_element, 1);
  EXPECT_TRUE(report.first_place.ends_with("a.h5, sample 2")) << report.first_place;
}

TEST_F(Hdf5Python, DamageIsAnErrorAndTheReaderGoesOn) {
  write(
      "f.create_dataset('x', data=np.random.default_rng(0).random((64, 8)), chunks=(4, 8), compression='gzip')\n"
      "f.create_dataset('y', data=np.zeros((64, 2)))\nf.close()\n"
      "b = bytearray(open('a.h5', 'rb').read())\n"
      "i = b.index(b'\\x78\\x5e') if b'\\x78\\x5e' in b else b.index(b'\\x78\\x01')\n"  // of zlib
      "b[i + 20:i + 40] = bytes(20)\nopen('a.h5', 'wb').write(b)\n");
  const Hdf5Dataset set(options({"x"})), other(options({"y"}));
  int bad = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    try {
      sample_of(set, i);
    } catch (const Error& error) {
      ++bad;
      EXPECT_NE(std::string(error.what()).find("a.h5"), std::string::npos) << error.what();
    }
  }
  EXPECT_GE(bad, 4);
  EXPECT_LT(bad, 64);  // other chunks are read
  sample_of(other, 3);
}

}  // namespace
}  // namespace lockstep::datasets
