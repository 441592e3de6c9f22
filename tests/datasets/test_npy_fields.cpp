#include "data/datasets/npy_fields.h"

#include "tests/data/support.h"
#include "tests/datasets/python.h"

namespace lockstep::datasets {
namespace {

using namespace data;

Bytes npy_file(const std::string& dtype, const std::string& shape, const Bytes& elements) {
  std::string header = "{'descr': '" + dtype;
  header += "', 'fortran_order': False, 'shape': " + shape;
  header += ", }\n";
  Bytes bytes{0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, static_cast<std::uint8_t>(header.size()), 0};
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), elements.begin(), elements.end());
  return bytes;
}

template <class T>
Bytes elements_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> read_values(const Dataset& set, std::int64_t index, std::size_t field = 0) {
  const Bytes bytes = sample_of(set, index)[field];
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

const Bytes kTwelve = elements_of<float>({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});

TEST(NpyFields, OneFilePerFieldWithSlicesAndTypes) {
  const TempDir dir;
  dir.write("x.npy", npy_file("<f4", "(3, 2, 2)", kTwelve));
  dir.write("y.npy", npy_file(">i2", "(3,)", {0, 5, 255, 255, 1, 0}));
  const NpyDataset set(
      {.dir = dir.path(), .inputs = {"x.npy", "part=x.npy[:, -1, 1:]:f64"}, .targets = {"label=y.npy"}, .classes = 9});
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.classes(), 9);
  EXPECT_EQ(set.inputs(), 2u);
  EXPECT_EQ(set.fields(),
            (std::vector<Field>{{"x", {2, 2}, DType::F32}, {"part", {1}, DType::F64}, {"label", Shape{}, DType::I32}}));
  EXPECT_EQ(read_values<float>(set, 1), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(read_values<double>(set, 2, 1), (std::vector<double>{11}));
  EXPECT_EQ(read_values<std::int32_t>(set, 0, 2)[0], 5);
  EXPECT_EQ(read_values<std::int32_t>(set, 1, 2)[0], -1);
  EXPECT_EQ(read_values<std::int32_t>(set, 2, 2)[0], 256);
}

TEST(NpyFields, AnyAxisCountsSamples) {
  const TempDir dir;
  dir.write("x.npy", npy_file("<f4", "(2, 3, 2)", kTwelve));
  const NpyDataset middle({.dir = dir.path(), .inputs = {"x.npy"}, .sample_axis = 1});
  EXPECT_EQ(middle.size(), 3);
  EXPECT_EQ(read_values<float>(middle, 1), (std::vector<float>{2, 3, 8, 9}));
  const NpyDataset last({.dir = dir.path(), .inputs = {"x.npy[..., 1:]"}, .sample_axis = -1});
  EXPECT_EQ(last.size(), 1);
  EXPECT_EQ(last.fields()[0].shape, Shape({2, 3}));
  EXPECT_EQ(read_values<float>(last, 0), (std::vector<float>{1, 3, 5, 7, 9, 11}));
}

TEST(NpyFields, MistakesNameTheFile) {
  const TempDir dir;
  dir.write("x.npy", npy_file("<f4", "(3, 2, 2)", kTwelve));
  dir.write("two.npy", npy_file("<f4", "(2,)", elements_of<float>({0, 1})));
  dir.write("short.npy", npy_file("<f4", "(3, 2, 2)", elements_of<float>({0, 1})));
  dir.write("large.npy", npy_file("<u8", "(1,)", Bytes(8, 255)));
  dir.write("tiny.npy", npy_file("<f1", "(1,)", {1}));
  dir.write("scalar.npy", npy_file("<f4", "()", elements_of<float>({1})));
  dir.write("text.npy", {'n', 'o', 't', ' ', 'o', 'n', 'e', '.'});
  dir.write("a.npz", {'n', 'o'});
  const auto fails = [&](std::vector<std::string> inputs, const std::vector<std::string>& parts) {
    expect_error([&] { NpyDataset({.dir = dir.path(), .inputs = std::move(inputs)}); }, parts);
  };
  fails({"x.npy", "two.npy"}, {"two.npy has 2 samples", "x.npy has 3"});
  fails({"short.npy"}, {"short.npy", "8 bytes", "expected 48", "float32"});
  fails({"tiny.npy"}, {"tiny.npy", "16, 32 or 64 bits"});
  fails({"scalar.npy"}, {"scalar.npy", "axis 0"});
  fails({"text.npy"}, {"text.npy", "not a NumPy array"});
  fails({"none.npy"}, {"none.npy", "no such file"});
  fails({"a.npz"}, {"a.npz/NAME"});
  fails({"a.npz/x"}, {"a.npz", "zip archive"});
  fails({"x.npy[0]"}, {"x.npy", "counts samples"});
  fails({}, {"no inputs"});
  const NpyDataset large({.dir = dir.path(), .inputs = {"large.npy"}});
  expect_error([&] { sample_of(large, 0); }, {"large.npy", "sample 0", "2^63 - 1"});
  const NpyDataset set({.dir = dir.path(), .inputs = {"x.npy"}});
  std::filesystem::resize_file(dir / "x.npy", 100);
  expect_error([&] { sample_of(set, 2); }, {"x.npy", "became shorter"});
}

TEST(NpyFields, ReadsWhatNumPyWrites) {
  const std::string python = find_python("numpy");
  if (python.empty()) GTEST_SKIP() << "no python3 with numpy";
  const TempDir dir;
  ASSERT_EQ(run_python(python, dir.path(),
                       "import numpy as np\n"
                       "v = np.array([[0, 1], [2, 100]])\n"
                       "for t in ['<f2', '>f2', '<f4', '>f4', '<f8', '>f8', '|i1', '|u1', '>i2', '<u2', '>i4', '<u4', "
                       "'>i8', '<u8']:\n"
                       "  np.save('t' + t[1:] + ('b' if t[0] == '>' else ''), v.astype(t))\n"
                       "np.savez_compressed('a', x=v.astype('>f2'), mask=v > 1)\n"),
            0);
  for (const char* name :
       {"tf2", "tf2b", "tf4", "tf4b", "tf8", "tf8b", "ti1", "tu1", "ti2b", "tu2", "ti4b", "tu4", "ti8b", "tu8"}) {
    const NpyDataset set({.dir = dir.path(), .inputs = {formatted("{}.npy:f64", name)}});
    EXPECT_EQ(read_values<double>(set, 0), (std::vector<double>{0, 1})) << name;
    EXPECT_EQ(read_values<double>(set, 1), (std::vector<double>{2, 100})) << name;
  }
  const NpyDataset packed({.dir = dir.path(), .inputs = {"a.npz/x"}, .targets = {"m=a.npz/mask[:, 1]"}});
  EXPECT_EQ(packed.fields(), (std::vector<Field>{{"x", {2}, DType::F32}, {"m", Shape{}, DType::U8}}));
  EXPECT_EQ(read_values<float>(packed, 1), (std::vector<float>{2, 100}));
  EXPECT_EQ(read_values<std::uint8_t>(packed, 1, 1)[0], 1);
}

}  // namespace
}  // namespace lockstep::datasets
