// Files of predictions: what is in them, and that there is a whole file or none.
#include "lockstep/data/array_file.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/data/class_predictions.h"
#include "lockstep/io/hdf5_reader.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

namespace fs = std::filesystem;

// Samples [begin, end) of "pressure" (2, 3), whose elements count from 0, and of "label", minus the sample's number.
std::vector<NamedTensor> part(std::int64_t begin, std::int64_t end) {
  Tensor pressure(Shape{end - begin, 2, 3}, DType::F32), label(Shape{end - begin}, DType::I32);
  for (std::int64_t i = 0; i < 6 * (end - begin); ++i)
    pressure.data<float>()[static_cast<std::size_t>(i)] = static_cast<float>(6 * begin + i) / 4;
  for (std::int64_t i = begin; i < end; ++i)
    label.data<std::int32_t>()[static_cast<std::size_t>(i - begin)] = static_cast<std::int32_t>(-i);
  std::vector<NamedTensor> arrays;
  arrays.push_back({"flow/pressure", std::move(pressure)});
  arrays.push_back({"label", std::move(label)});
  return arrays;
}

const std::vector<Field> kFields{{"flow/pressure", Shape{2, 3}, DType::F32}, {"label", Shape{}, DType::I32}};

class ArrayFiles : public ::testing::Test {
 protected:
  ArrayFiles() { fs::create_directories(folder_); }
  ~ArrayFiles() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::vector<std::int64_t>& cuts) {
    const fs::path path = folder_ / name;
    ArrayFile file(path);
    file.begin(kFields, cuts.back());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) file.append(part(cuts[i], cuts[i + 1]));
    EXPECT_FALSE(fs::exists(path)) << "before it is whole";
    file.commit();
    return path;
  }
  static std::string bytes(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t names() const { return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {})); }

  fs::path folder_ = fs::temp_directory_path() / ("lockstep-array-file-" + std::to_string(::getpid()));
};

template <class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ArrayFiles, Hdf5HasEachArrayUnderItsName) {
  const fs::path path = write("all.h5", {0, 4, 5, 7});
  const auto reader = io::make_hdf5_reader({});
  const io::Hdf5Info pressure = reader->info(path.string(), "flow/pressure"),
                     label = reader->info(path.string(), "label");
  EXPECT_EQ(pressure.shape, (Shape{7, 2, 3}));
  EXPECT_EQ(pressure.dtype, DType::F32);
  EXPECT_EQ(label.shape, Shape{7});
  EXPECT_EQ(label.dtype, DType::I32);
  Tensor found(Shape{7, 2, 3}, DType::F32), numbers(Shape{7}, DType::I32);
  reader->read(path.string(), "flow/pressure", pressure, {.start = {0, 0, 0}, .count = {7, 2, 3}, .step = {1, 1, 1}},
               {found.raw(), found.bytes()});
  reader->read(path.string(), "label", label, {.start = {0}, .count = {7}, .step = {1}},
               {numbers.raw(), numbers.bytes()});
  for (std::size_t i = 0; i < 42; ++i) EXPECT_EQ(found.data<float>()[i], static_cast<float>(i) / 4);
  for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(numbers.data<std::int32_t>()[i], -static_cast<std::int32_t>(i));
}

TEST_F(ArrayFiles, PartsDoNotChangeTheBytes) {
  for (const char* suffix : {".h5", ".npz", ".csv"}) {
    EXPECT_EQ(bytes(write(std::string("one") + suffix, {0, 7})),
              bytes(write(std::string("many") + suffix, {0, 1, 6, 7})));
  }
}

TEST_F(ArrayFiles, NpyIsTheArrayBehindItsHeader) {
  const fs::path path = folder_ / "pressure.NPY";
  {
    ArrayFile file(path);
    file.begin({kFields[0]}, 3);
    auto arrays = part(0, 3);
    file.append(std::span(arrays).first(1));
    file.commit();
  }
  const std::string text = bytes(path);
  ASSERT_EQ(text.size() % 64, (3 * 6 * 4) % 64);
  const std::size_t header = text.size() - 3 * 6 * 4;
  EXPECT_EQ(text.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(static_cast<unsigned char>(text[8]) + 256 * static_cast<unsigned char>(text[9]),
            static_cast<int>(header) - 10);
  EXPECT_EQ(text.substr(10, text.find('}') - 9), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2, 3), }");
  EXPECT_EQ(text[header - 1], '\n');
  float last = 0;
  std::memcpy(&last, text.data() + text.size() - 4, 4);
  EXPECT_EQ(last, 17.0F / 4);
}

TEST_F(ArrayFiles, CsvHasARowForEachSample) {
  const std::string text = bytes(write("all.csv", {0, 1, 2}));
  EXPECT_EQ(text,
            "index,flow/pressure_0_0,flow/pressure_0_1,flow/pressure_0_2,flow/pressure_1_0,flow/pressure_1_1,"
            "flow/pressure_1_2,label\n"
            "0,0,0.25,0.5,0.75,1,1.25,0\n"
            "1,1.5,1.75,2,2.25,2.5,2.75,-1\n");
}

TEST_F(ArrayFiles, ANameWithACommaIsQuoted) {
  const fs::path path = folder_ / "names.csv";
  ArrayFile file(path);
  file.begin({{"a \"b\", c", Shape{}, DType::F64}}, 1);
  std::vector<NamedTensor> arrays;
  arrays.push_back({"a \"b\", c", Tensor::from<double>(Shape{1}, std::array{0.1})});
  file.append(arrays);
  file.commit();
  EXPECT_EQ(bytes(path), "index,\"a \"\"b\"\", c\"\n0,0.1\n");
}

// One class per sample, and one per place.
TEST_F(ArrayFiles, NotesTellFilesAndClasses) {
  const ArrayNotes notes{.file = [](std::int64_t sample) { return formatted("a,{}.png", sample); },
                         .class_names = {"red", "\"deep\" blue"},
                         .metadata = R"({"step":3})"};
  const auto write = [&](const std::string& name, std::vector<NamedTensor> arrays) {
    const fs::path path = folder_ / name;
    std::vector<Field> fields;
    for (const auto& [array, tensor] : arrays) fields.push_back({array, tensor.shape().tail(), tensor.dtype()});
    ArrayFile file(path);
    file.begin(fields, arrays.front().tensor.shape()[0], notes);
    file.append(arrays);
    file.commit();
    return path;
  };
  const auto logits = [](const Shape& shape) {
    Tensor tensor(shape, DType::F64);
    for (double& value : tensor.data<double>()) value = 0;
    tensor.data<double>()[1] = 1e3;
    return tensor;
  };
  EXPECT_EQ(bytes(write("classes.csv", class_predictions(logits({2, 2}), 2))),
            "index,file,class,name,probability_red,\"probability_\"\"deep\"\" blue\"\n"
            "0,\"a,0.png\",1,\"\"\"deep\"\" blue\",0,1\n"
            "1,\"a,1.png\",0,red,0.5,0.5\n");
  EXPECT_EQ(bytes(write("places.csv", class_predictions(logits({1, 2, 2}), 2))),
            "index,file,class_0,class_1,probability_red_0,probability_red_1,\"probability_\"\"deep\"\" blue_0\","
            "\"probability_\"\"deep\"\" blue_1\"\n"
            "0,\"a,0.png\",0,0,0.5,1,0.5,0\n");
  const std::string stored = bytes(write("classes.h5", class_predictions(logits({2, 2}), 2)));
  EXPECT_NE(stored.find(notes.metadata), std::string::npos);
}

TEST_F(ArrayFiles, NothingIsLeftOfAFileThatIsNotFinished) {
  {
    ArrayFile file(folder_ / "half.h5");
    file.begin(kFields, 4);
    file.append(part(0, 2));
    EXPECT_NE(message_of([&] { file.commit(); }).find("2 samples are written, expected 4"), std::string::npos);
  }
  EXPECT_EQ(names(), 0u);
}

TEST_F(ArrayFiles, MistakesAreNamed) {
  EXPECT_NE(
      message_of([&] { ArrayFile(folder_ / "p.txt"); }).find("expected a name that ends in .h5, .npz, .npy or .csv"),
      std::string::npos);
  EXPECT_NE(message_of([&] { ArrayFile(folder_ / "none" / "p.h5"); }).find("there is no folder"), std::string::npos);
  const fs::path there = write("there.csv", {0, 1});
  const std::string before = bytes(there);
  EXPECT_NE(message_of([&] { ArrayFile{there}; }).find("exists already"), std::string::npos);
  EXPECT_EQ(bytes(there), before);
  ArrayFile two(folder_ / "two.npy");
  EXPECT_NE(
      message_of([&] { two.begin(kFields, 1); })
          .find("2 arrays, flow/pressure, label, and a .npy file holds one; expected a name that ends in .npz, .h5 or "
                ".csv"),
      std::string::npos);
  EXPECT_NE(message_of([] { check_array_count("p.NPY", 2, "a, b"); }).find("2 arrays, a, b"), std::string::npos);
  check_array_count("p.csv", 2, "a, b");
  check_array_count("p.npy", 1, "a");
  ArrayFile other(folder_ / "other.h5");
  other.begin(kFields, 3);
  EXPECT_NE(message_of([&] { other.append(part(0, 4)); }).find("expected 3 in all"), std::string::npos);
  auto swapped = part(0, 1);
  std::swap(swapped[0], swapped[1]);
  EXPECT_NE(message_of([&] { other.append(swapped); }).find("a part has 'label'"), std::string::npos);
}

// A file that came up meanwhile belongs to somebody else.
TEST_F(ArrayFiles, AFileThatAppearedMeanwhileStays) {
  const fs::path path = folder_ / "late.csv";
  ArrayFile file(path);
  file.begin(kFields, 1);
  file.append(part(0, 1));
  std::ofstream(path) << "mine";
  EXPECT_NE(message_of([&] { file.commit(); }).find("exists now"), std::string::npos);
  EXPECT_EQ(bytes(path), "mine");
}

TEST(ClassPredictions, AreTheLargestLogitAndSoftmax) {
  // Two samples of three classes at two places.
  const std::array<double, 12> values{1, -2, 3, 4, 3, 4, 1000, 0, 999, -1, 0, 5};
  const auto arrays = class_predictions(Tensor::from<double>(Shape{2, 3, 2}, values), 3);
  ASSERT_EQ(arrays.size(), 2u);
  EXPECT_EQ(arrays[0].name, "class");
  EXPECT_EQ(arrays[0].tensor.shape(), (Shape{2, 2}));
  const std::array<std::int32_t, 4> classes{1, 1, 0, 2};  // of equal ones the first
  EXPECT_TRUE(std::ranges::equal(arrays[0].tensor.data<std::int32_t>(), classes));
  for (std::size_t s = 0; s < 2; ++s) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto value = [&](std::size_t c) { return values[6 * s + 2 * c + i]; };
      const double most = std::max({value(0), value(1), value(2)});
      double sum = 0;
      for (std::size_t c = 0; c < 3; ++c) sum += std::exp(value(c) - most);
      for (std::size_t c = 0; c < 3; ++c)
        EXPECT_NEAR(arrays[1].tensor.data<double>()[6 * s + 2 * c + i], std::exp(value(c) - most) / sum, 1e-15);
    }
  }
  EXPECT_THROW(class_predictions(Tensor(Shape{2, 4}, DType::F32), 3), Error);
  EXPECT_THROW(class_predictions(Tensor(Shape{3}, DType::F32), 3), Error);
}

}  // namespace
}  // namespace lockstep::data
